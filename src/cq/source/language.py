"""The language of a file: by its name, then its shebang, then its modeline. Tables, and nothing that reads a disk."""

from __future__ import annotations

import re

# The extension tools expect for a document of a language, whatever file it is embedded in.
EXTENSIONS: dict[str, str] = {
    "python": ".py", "typescript": ".ts", "tsx": ".tsx", "javascript": ".js", "jsx": ".jsx", "rust": ".rs",
    "go": ".go", "java": ".java", "c": ".c", "cpp": ".cpp", "csharp": ".cs", "kotlin": ".kt", "php": ".php",
    "ruby": ".rb", "shell": ".sh", "sql": ".sql", "scala": ".scala", "swift": ".swift", "lua": ".lua",
    "elixir": ".ex", "haskell": ".hs", "zig": ".zig",
    "json": ".json", "yaml": ".yaml", "toml": ".toml", "markdown": ".md", "mdx": ".mdx", "html": ".html",
    "vue": ".vue", "svelte": ".svelte", "astro": ".astro", "css": ".css", "scss": ".scss", "sass": ".sass",
    "less": ".less", "text": ".txt",
}  # fmt: skip

BY_EXTENSION: dict[str, str] = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw gyp gypi bzl star wsgi pyt",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "javascript": "js mjs cjs es es6 jsm",
        "jsx": "jsx",
        "rust": "rs",
        "go": "go",
        "java": "java",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp ixx tpp tcc inl cppm cu cuh ino",
        "csharp": "cs csx cake",
        "kotlin": "kt kts ktm",
        "php": "php php3 php4 php5 php7 phtml phpt",
        "ruby": "rb rake gemspec ru podspec rbw jbuilder thor rabl",
        "shell": "sh bash zsh ksh dash bats command ebuild eclass",
        "sql": "sql psql pgsql mysql ddl dml plsql pls",
        "scala": "scala sc sbt",
        "swift": "swift",
        "lua": "lua rockspec nse wlua",
        "elixir": "ex exs",
        "haskell": "hs hs-boot hsc",
        "zig": "zig zon",
        "json": "json jsonc json5 jsonl ndjson geojson webmanifest topojson ipynb har avsc code-workspace",
        "yaml": "yaml yml clang-format clang-tidy",
        "toml": "toml",
        "markdown": "md markdown mkd mkdn mdown mdwn",
        "mdx": "mdx",
        "html": "html htm xhtml shtml",
        "vue": "vue",
        "svelte": "svelte",
        "astro": "astro",
        "css": "css pcss postcss",
        "scss": "scss",
        "sass": "sass",
        "less": "less",
        "text": "txt text rst adoc asciidoc org tex log csv tsv",
    }.items()
    for extension in extensions.split()
}

_BY_NAME: dict[str, str] = {
    name: language
    for language, names in {
        "python": "BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel SConstruct SConscript wscript Snakefile Tiltfile "
        ".pythonrc .pythonstartup",
        "ruby": "Gemfile Rakefile Vagrantfile Podfile Guardfile Capfile Brewfile Fastfile Appfile Dangerfile "
        "Thorfile Berksfile Puppetfile Steepfile Appraisals config.ru .irbrc .pryrc .simplecov",
        "shell": ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile "
        ".zlogin .zlogout .kshrc .envrc .xinitrc .xsession .xprofile APKBUILD PKGBUILD gradlew",
        "toml": "Cargo.lock poetry.lock uv.lock pdm.lock Pipfile Gopkg.lock",
        "json": "composer.lock Pipfile.lock flake.lock deno.lock bun.lock .babelrc .eslintrc .jshintrc .jscsrc "
        ".stylelintrc .htmlhintrc .swcrc .bowerrc .arcconfig .watchmanconfig .tern-project .tern-config "
        ".all-contributorsrc .nycrc .c8rc .csslintrc mcmod.info",
        "yaml": ".clang-format .clang-tidy .clangd .prettierrc .gemrc .yarnrc.yml CITATION.cff pixi.lock",
        "javascript": "Jakefile .pnpmfile.cjs",
        "lua": ".luacheckrc",
        "php": ".php .php_cs .php_cs.dist",
        "text": "README LICENSE LICENCE COPYING NOTICE AUTHORS CHANGES CHANGELOG CONTRIBUTORS INSTALL NEWS THANKS TODO "
        "VERSION Makefile GNUmakefile Dockerfile Containerfile Justfile CMakeLists.txt yarn.lock Gemfile.lock",
    }.items()
    for name in names.split()
}
_BY_LOWER_NAME = {name.lower(): language for name, language in _BY_NAME.items()}

# What people call a language: fence info strings, `lang=` attributes, modelines, interpreters.
_ALIASES: dict[str, str] = {
    alias: language
    for language, aliases in {
        "python": "py py3 python2 python3 ipython ipython3 pypy pypy3 pyi gyp starlark bazel sage",
        "typescript": "ts mts cts ts-node deno",
        "tsx": "typescriptreact",
        "javascript": "js mjs cjs node nodejs es6 ecmascript bun",
        "jsx": "javascriptreact react babel",
        "rust": "rs rust-script",
        "go": "golang",
        "java": "",
        "c": "h",
        "cpp": "c++ cc cxx hpp cuda",
        "csharp": "c# cs dotnet-script",
        "kotlin": "kt kts kotlinc",
        "php": "php3 php4 php5 php7 php8",
        "ruby": "rb jruby macruby rake",
        "shell": "sh bash zsh ksh dash ash shell-script mksh",
        "sql": "psql postgres postgresql mysql sqlite sqlite3 plpgsql plsql tsql",
        "scala": "sbt",
        "swift": "",
        "lua": "luajit",
        "elixir": "ex exs iex",
        "haskell": "hs runghc runhaskell stack",
        "zig": "",
        "json": "jsonc json5 jsonl ndjson jsonld",
        "yaml": "yml",
        "toml": "",
        "markdown": "md gfm",
        "mdx": "",
        "html": "htm xhtml html5",
        "vue": "",
        "svelte": "",
        "astro": "",
        "css": "postcss pcss css3",
        "scss": "",
        "sass": "",
        "less": "",
    }.items()
    for alias in (language, *aliases.split())
}

_SHEBANG = re.compile(rb"#![ \t]*([^\s]+)([^\r\n]*)")
_EMACS = re.compile(rb"-\*-[ \t]*(?:(?:[^\r\n]*?[; \t])?mode:[ \t]*([\w+#-]+)|([\w+#-]+)[ \t]*-\*-)", re.IGNORECASE)
_VIM = re.compile(rb"(?:^|[ \t])(?:vim?|ex):[^\r\n]*?\b(?:ft|filetype|syntax)=([\w+#-]+)", re.MULTILINE)
# `.h` serves C and C++ alike; only what C cannot say decides for C++.
_CPP_HEADER = re.compile(
    rb"^[ \t]*(?:namespace\b|template[ \t]*<|class[ \t]+\w|using[ \t]+\w|(?:public|private|protected)[ \t]*:"
    rb"|#[ \t]*include[ \t]*<(?:string|vector|map|memory|iostream|cstd\w+|utility|functional|type_traits)>)",
    re.MULTILINE,
)


def detect_language(path: str, head: bytes = b"") -> str:
    """A language id, `text` for prose and for everything unknown. `head` is the file's first bytes, if at hand."""
    head = head[:8192]
    name = path.rpartition("/")[2]
    language = _BY_NAME.get(name)
    if language:
        return language
    stem, dot, extension = name.rpartition(".")
    if dot and stem:
        if extension in ("C", "H"):
            return "cpp"
        language = BY_EXTENSION.get(extension) or BY_EXTENSION.get(extension.lower())
        if language == "c" and extension in ("h", "H") and _is_cpp_header(head):
            return "cpp"
        if language == "typescript" and head.lstrip()[:13].startswith((b"<?xml", b"<!DOCTYPE TS")):
            return "text"  # a Qt translation, which shares the extension
        if language:
            return language
    language = _BY_LOWER_NAME.get(name.lower())
    if language and language != "text":
        return language
    return _language_of_shebang(head) or _language_of_modeline(head) or "text"


def find_language(name: str) -> str | None:
    """The language people mean by a name (`py`, `TypeScript`, `c++`, `language-js`); None when it is not ours."""
    name = name.lower()
    return _ALIASES.get(name) or _ALIASES.get(name.removeprefix("language-").removeprefix("lang-"))


def _is_cpp_header(head: bytes) -> bool:
    return _language_of_modeline(head) == "cpp" or _CPP_HEADER.search(head) is not None


def _language_of_shebang(head: bytes) -> str | None:
    match = _SHEBANG.match(head)
    if not match:
        return None
    words = [match[1].decode("latin-1"), *match[2].decode("latin-1").split()]
    program = words.pop(0).rpartition("/")[2]
    if program == "env":
        # `env -S A=1 python3 -u` and `env -S uv run --script` are both in use.
        words = [word for word in words if not word.startswith("-") and "=" not in word]
        program = words.pop(0).rpartition("/")[2] if words else ""
    if program in ("uv", "pipx") and words[:1] == ["run"]:
        return "python"
    return find_language(program) or find_language(program.rstrip("0123456789.-"))


def _language_of_modeline(head: bytes) -> str | None:
    lines = [line[:500] for line in head.split(b"\n", 5)[:5]]
    match = _EMACS.search(b"\n".join(lines[:2]))
    if not match:
        match = _VIM.search(b"\n".join(lines))
        return find_language(match[1].decode()) if match else None
    return find_language((match[1] or match[2]).decode())
