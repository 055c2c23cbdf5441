#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks autofused for kernels through its open door, with nothing but libnanomsg: gate_client.py GATE.ipc FRAGMENT.json [OUT]"""
import ctypes, json, os, socket, struct, sys

AF_SP, NN_REQ, NN_SUB, NN_SUB_SUBSCRIBE, NN_REQ_RESEND_IVL = 1, 48, 33, 1, 1
NN_SOL_SOCKET, NN_RCVTIMEO, NN_RCVMAXSIZE = 0, 5, 16
nn = ctypes.CDLL('libnanomsg.so.5', use_errno=True)
nn.nn_strerror.restype = ctypes.c_char_p


def check(result, what):
    if result < 0:
        raise OSError(nn.nn_errno(), f'{what}: {nn.nn_strerror(nn.nn_errno()).decode()}')
    return result


class Gate:
    """One socket; one request at a time, from one thread, of one process. max_bytes: the largest reply that is taken."""

    def __init__(self, path, max_bytes=16 << 20, timeout_ms=600000):
        if len(os.fsencode(path)) > 107:
            raise ValueError('the path is too long for a socket')
        with socket.socket(socket.AF_UNIX) as probe:  # nanomsg would wait in silence for a server that is not there, or not for us
            probe.connect(path)
        self.max_bytes = max_bytes
        self.socket = check(nn.nn_socket(AF_SP, NN_REQ), 'nn_socket')
        for level, option, value in ((NN_SOL_SOCKET, NN_RCVMAXSIZE, max_bytes), (NN_SOL_SOCKET, NN_RCVTIMEO, timeout_ms),
                                     (NN_REQ, NN_REQ_RESEND_IVL, timeout_ms)):  # not sent twice while it is compiled
            n = ctypes.c_int(value)
            check(nn.nn_setsockopt(self.socket, level, option, ctypes.byref(n), ctypes.sizeof(n)), 'nn_setsockopt')
        check(nn.nn_connect(self.socket, b'ipc://' + os.fsencode(path)), 'nn_connect')

    def ask(self, fragment=None, **envelope):
        """fragment: its JSON text. envelope: want, deadline_ms, wait_ms, lookup_only, priority. Returns (header, bundle)."""
        members = [f'{json.dumps(k)}: {json.dumps(v)}' for k, v in {'max_bytes': self.max_bytes, **envelope}.items()]
        if fragment is not None:
            members.append('"fragment": ' + fragment)  # as it is: numbers are not printed anew
        message = ('{' + ', '.join(members) + '}').encode()
        check(nn.nn_send(self.socket, message, len(message), 0), 'nn_send')
        pointer = ctypes.c_void_p()
        size = check(nn.nn_recv(self.socket, ctypes.byref(pointer), ctypes.c_size_t(-1), 0), 'nn_recv')
        reply = ctypes.string_at(pointer, size)
        nn.nn_freemsg(pointer)
        magic, n_header, n_bundle = struct.unpack_from('<4sIQ', reply)
        assert magic == b'AFG1'
        return json.loads(reply[16:16 + n_header]), reply[-n_bundle:] if n_bundle else b''

    def close(self):
        nn.nn_close(self.socket)


if __name__ == '__main__':
    gate = Gate(sys.argv[1]) if len(sys.argv) > 2 else sys.exit(__doc__)
    header, bundle = gate.ask(open(sys.argv[2]).read())
    gate.close()
    print(json.dumps(header, indent=2))
    if bundle and len(sys.argv) > 3:
        open(sys.argv[3], 'wb').write(bundle)
    sys.exit(header['status'] != 'ok')
