"""Which commit of this project is measured."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """Its name, "with changes" if files differ from it; None if the package is not a checkout's."""

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(Path(__file__).parent), *words], capture_output=True, text=True, check=False
            )
        except OSError:  # there is no git
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # Installed among other things in somebody's repository, the files are none of git's.
    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    changes = git("status", "--porcelain", "--untracked-files=no", ":/src")
    return f"{git('rev-parse', 'HEAD')}{' with changes' if changes else ''}"
