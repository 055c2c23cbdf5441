# SPDX-License-Identifier: Apache-2.0
"""A Python with packages that Debian does not have: deploy/install-python's build/venv, or one that AUTOFUSED_TORCH_PYTHON names."""
import importlib.util
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(os.environ.get('AF_BUILD_ROOT', os.path.join(ROOT, 'build')), 'venv')


def need(*modules):
    """Goes on where these modules are: in this Python, else in the other one, which runs the script again; else the test is skipped
    (exit 77). Call it first."""
    lacking = [m for m in modules if importlib.util.find_spec(m) is None]
    if not lacking:
        return
    other = os.environ.get('AUTOFUSED_TORCH_PYTHON') or os.path.join(VENV, 'bin', 'python')
    if os.access(other, os.X_OK) and os.environ.get('AF_OTHER_PYTHON') != other:
        os.environ['AF_OTHER_PYTHON'] = other
        os.execv(other, [other, *sys.argv])
    why = f'{other} has none either' if os.access(other, os.X_OK) else f'there is no {other}'
    if os.path.exists(VENV + '.why'):
        with open(VENV + '.why', encoding='utf-8') as f:
            why = f.read().strip()
    print(f'# skipped: no {", ".join(lacking)} here: {why}')
    sys.exit(77)
