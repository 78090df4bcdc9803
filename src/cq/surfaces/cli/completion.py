"""`cq completion bash|zsh|fish`: a script for the shell; `cq completion words` is what the script asks."""

from __future__ import annotations

import sys
from argparse import REMAINDER, SUPPRESS, ArgumentParser, Namespace

from cq.surfaces import cli
from cq.surfaces.cli import COMMANDS, find_command
from cq.surfaces.names import MOST, choose_names

_EXAMPLES = """\
examples:
  cq completion bash >> ~/.bashrc
  cq completion zsh > ~/.zfunc/_cq            a directory of your fpath
  cq completion fish > ~/.config/fish/completions/cq.fish"""

SCRIPTS = {
    "bash": """\
_cq() {
    local IFS=$'\\n'
    COMPREPLY=($(cq completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}
complete -o default -F _cq cq
""",
    "zsh": """\
#compdef cq
_cq() {
    local -a found
    found=("${(@f)$(cq completion words -- "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -Q -- "${found[@]}" || _files
}
if [[ "$funcstack[1]" == _cq ]]; then _cq "$@"; else compdef _cq cq; fi
""",
    "fish": """\
complete -c cq -f -a '(cq completion words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", choices=(*SCRIPTS, "words"), help="print the script for this shell")
    parser.add_argument("words", nargs=REMAINDER, help=SUPPRESS)


def run(args: Namespace) -> int:
    if args.shell != "words":
        sys.stdout.write(SCRIPTS[args.shell])
        return 0
    found = _find_words([word for at, word in enumerate(args.words) if at or word != "--"])
    sys.stdout.write("".join(f"{word}\n" for word in found))
    return 0 if found else 1


def _find_words(words: list[str]) -> list[str]:
    """What may stand in place of the last word. No error is told: a shell has no place for one."""
    *before, last = words or [""]
    if not before:
        return [name for name in (*COMMANDS, "help", "--help", "--version") if name.startswith(last)]
    command = before[0]
    if command == "help":
        return [name for name in COMMANDS if name.startswith(last)]
    if command not in COMMANDS:
        return []
    if last.startswith("-") or before[-1].startswith("--"):
        options, choices = _find_options(command)
        values = choices.get(before[-1], ())
        return [word for word in (values or options) if word.startswith(last)]
    if not last:
        return []
    return _find_names(command, last)


def _find_options(command: str) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    parser = ArgumentParser(add_help=True)
    find_command(command).configure(parser)
    options: list[str] = []
    choices: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:
        options += [name for name in action.option_strings if name.startswith("--")]
        choices |= {name: tuple(map(str, action.choices or ())) for name in action.option_strings}
    return sorted(options), choices


def _find_names(command: str, prefix: str) -> list[str]:
    """By the settings of the repository; the client has asked where they say nothing."""
    from cq.model.errors import CqError
    from cq.workspace import Workspace

    try:
        with Workspace.open(auto_refresh=False, resident=cli.resident) as workspace:
            found = workspace.complete(prefix, limit=MOST)
    except (CqError, OSError):
        return []
    return choose_names(command, found.names, found.paths)
