"""The packaged example: a support desk's synthetic ticket history with its eval sets, and a pipeline over them."""
