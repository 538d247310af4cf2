"""Makes the servers' data directories once, for several test processes to copy:
python3 -m harness.templates DIRECTORY. The directory is then given as $PRONY_TEST_TEMPLATES."""
import os
import sys
from pathlib import Path

from harness.mariadb import MariaDB
from harness.place import Place, run_quietly
from harness.postgres import Postgres
from harness.server import TEMPLATES_NAME, Absent


def main():
    out = Path(sys.argv[1]).resolve()
    os.environ.pop(TEMPLATES_NAME, None)
    place = Place()
    try:
        for kind in (Postgres, MariaDB):
            try:
                server = kind(place)
            except Absent:
                continue  # its tests will say so
            server.start()  # all that the first start does is done
            server.stop()
            run_quietly(["cp", "-a", server.data, out / server.name])
            server.release()
    finally:
        place.remove()


if __name__ == "__main__":
    main()
