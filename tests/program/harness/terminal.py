"""A terminal for programs that look whether they have one."""
import os
import pty
import select
import termios
import struct
import fcntl
import time


class Terminal:
    """side is the descriptor to give to a program; read() what it wrote."""

    def __init__(self, columns=80):
        self.main, self.side = pty.openpty()
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.text = ""

    def read(self, seconds=0.0):
        """All that is there, and what comes within the time."""
        end = time.monotonic() + seconds
        while True:
            left = max(0, end - time.monotonic())
            ready, _, _ = select.select([self.main], [], [], left)
            if not ready:
                return self.text
            try:
                self.text += os.read(self.main, 65536).decode("utf-8", "replace")
            except OSError:  # the last one has closed it
                return self.text

    def close(self):
        os.close(self.main)
        os.close(self.side)
