"""The machine-learning side of the ports: the only place for torch, transformers, peft, accelerate and onnx.

Nothing is loaded here; `protocol` and `hub` load nothing heavy either, so launchers and whoever binds the ports may
import them.
"""
