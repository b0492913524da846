"""The program ``kernelbounds``, also as ``python -m kernelbounds``: the command line."""

import signal
import sys


def main() -> None:
    """Run the command line; an interrupt becomes one line, also while modules are imported."""
    try:
        from kernelbounds import cli
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was changed\n")
        raise SystemExit(130) from None
    try:
        cli.main()
    except KeyboardInterrupt:  # a second one, while the first was being reported
        raise SystemExit(130) from None
    finally:  # All has been said and done, so an interrupt may end the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
