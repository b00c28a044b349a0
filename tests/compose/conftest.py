"""Lets the tests of this folder import checkout.py, which lies beside them: importlib mode adds no folder by itself."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
