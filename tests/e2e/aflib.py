# SPDX-License-Identifier: Apache-2.0
"""libautofuse in this process, through ctypes: what tests need of it."""
import ctypes as C, os
from afwire import BUILD

COMPILED, JOINED, STORE, MEMO, HOT = range(5)
UNAVAILABLE = 4
u32, u64 = C.c_uint32, C.c_uint64


class Options(C.Structure):
    _fields_ = [('size', C.c_size_t), ('socket', C.c_char_p), ('server_uid', C.c_int64), ('memo_bytes', u64), ('connect_timeout_ms', u32),
                ('strict', C.c_int), ('client_name', C.c_char_p), ('log', C.c_void_p), ('userdata', C.c_void_p)]


class Submit(C.Structure):
    _fields_ = [('size', C.c_size_t), ('deadline_ms', u32), ('priority', C.c_uint8), ('lookup_only', C.c_bool), ('bypass_memo', C.c_bool),
                ('progress', C.c_void_p), ('userdata', C.c_void_p)]


class Info(C.Structure):
    _fields_ = [('hit', C.c_int), ('compile_us', u64)] + [(n, u32) for n in (
        'n_steps', 'n_kernel_steps', 'n_framework_steps', 'n_nodes_fused', 'n_kernels', 'n_inputs', 'n_outputs', 'n_buffers', 'n_decisions')] + [
        ('temp_bytes', u64), ('hbm_bytes', u64), ('bundle_bytes', u64), ('fragment', C.c_char * 65), ('environment', C.c_char * 65)]


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(f'{status}: {text}')
        self.status, self.text = status, text


lib = C.CDLL(os.path.join(BUILD, 'client', 'libautofuse.so.0'))
lib.autofuse_error_text.restype = C.c_char_p
for name in ('autofuse_context_close', 'autofuse_bundle_unref', 'autofuse_error_free', 'autofuse_context_forget'):
    getattr(lib, name).argtypes, getattr(lib, name).restype = [C.c_void_p], None
lib.autofuse_error_text.argtypes = [C.c_void_p]
lib.autofuse_bundle_info.argtypes = [C.c_void_p, C.POINTER(Info)]
lib.autofuse_compile_text.argtypes = [C.c_void_p, C.c_char_p, C.c_size_t, C.POINTER(Submit), C.POINTER(C.c_void_p), C.POINTER(C.c_void_p)]
lib.autofuse_context_open.argtypes = [C.POINTER(Options), C.POINTER(C.c_void_p), C.POINTER(C.c_void_p)]


def check(status, error):
    if status:
        text = lib.autofuse_error_text(error).decode() if error else ''
        lib.autofuse_error_free(error)
        raise Failed(status, text)


class Context:
    """memo=False: every answer comes from the hot area or the server."""

    def __init__(self, socket, memo=True, connect_timeout_ms=0):
        o = Options(C.sizeof(Options), socket.encode(), -1, 0 if memo else 2**64 - 1, connect_timeout_ms, 0, b'test', None, None)
        self.ctx, error = C.c_void_p(), C.c_void_p()
        check(lib.autofuse_context_open(o, self.ctx, error), error)

    def compile(self, text, bypass=False, deadline_ms=0):
        o = Submit(C.sizeof(Submit), deadline_ms, 0, False, bypass, None, None)
        bundle, error, info = C.c_void_p(), C.c_void_p(), Info()
        check(lib.autofuse_compile_text(self.ctx, text, len(text), o, bundle, error), error)
        lib.autofuse_bundle_info(bundle, info)
        lib.autofuse_bundle_unref(bundle)
        return info

    def close(self):
        lib.autofuse_context_close(self.ctx)
        self.ctx = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
