"""The machine-learning side of the ports: the only place for torch, transformers, peft, accelerate and onnx.

Nothing is loaded here; `protocol` and `hub` load nothing heavy either, so launchers and whoever binds the ports may
import them.
"""

import os

# ONNX Runtime's builds send usage events over the network from the moment they are imported, unless this is set.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
