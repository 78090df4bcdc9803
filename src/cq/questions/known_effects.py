"""What functions from outside a repository do when they are called, as far as their names tell: tables, no code.

An entry is a dotted name, meant with all below it; `module.Class()` is an instance. The longest entry decides.
"""

from __future__ import annotations

import re
from functools import cache

EFFECTS = ("network", "process", "io", "environment", "registration", "state", "unknown", "pure")

_PYTHON = {
    "network": """socket requests httpx aiohttp urllib.request urllib3 http.client smtplib ftplib boto3 paramiko
        xmlrpc.client websockets redis pymongo psycopg psycopg2 MySQLdb asyncpg poplib imaplib telnetlib""",
    "process": """subprocess os.system os.popen os.execv os.execve os.execvp os.fork os.kill os._exit os.abort sys.exit
        builtins.exit builtins.quit builtins.breakpoint builtins.exec builtins.eval builtins.__import__ signal
        multiprocessing.Process().start multiprocessing.Pool multiprocessing.set_start_method threading.Thread().start
        threading.Timer().start concurrent.futures asyncio.run asyncio.create_task asyncio.get_event_loop ctypes.CDLL
        ctypes.cdll ctypes.windll importlib.import_module importlib.reload runpy pkgutil.walk_packages""",
    "io": """builtins.open builtins.print builtins.input io.open os.open os.mkdir os.makedirs os.remove os.unlink
        os.rename os.replace os.rmdir os.removedirs os.listdir os.scandir os.walk os.stat os.lstat os.chmod os.chown
        os.symlink os.link os.read os.write os.path.exists os.path.isfile os.path.isdir os.path.islink os.path.getsize
        os.path.getmtime os.access shutil tempfile glob sqlite3 zipfile.ZipFile tarfile.open pickle.load json.load
        tomllib.load yaml.load yaml.safe_load pkgutil.get_data importlib.resources importlib.metadata linecache
        fileinput sys.stdout sys.stderr configparser.ConfigParser().read builtins.open() codecs.open gzip.open
        pathlib.Path().open pathlib.Path().read_text pathlib.Path().read_bytes pathlib.Path().write_text
        pathlib.Path().write_bytes pathlib.Path().mkdir pathlib.Path().unlink pathlib.Path().exists
        pathlib.Path().is_file pathlib.Path().is_dir pathlib.Path().iterdir pathlib.Path().glob pathlib.Path().rglob
        pathlib.Path().touch pathlib.Path().rename pathlib.Path().stat pathlib.Path().resolve logging.FileHandler""",
    "environment": """os.environ os.getenv os.putenv os.unsetenv os.chdir os.getcwd os.umask os.setuid os.cpu_count
        os.getpid os.expanduser os.path.expanduser os.path.expandvars sys.path sys.setrecursionlimit locale time.tzset
        platform getpass pathlib.Path.home pathlib.Path.cwd sys.getrecursionlimit sysconfig site dotenv""",
    "registration": """atexit.register codecs.register mimetypes.add_type copyreg csv.register_dialect
        sqlite3.register_adapter sqlite3.register_converter signal.signal webbrowser.register sys.meta_path
        sys.path_hooks pytest.fixture pytest.hookimpl celery.shared_task click.command click.group""",
    "state": """sys.modules sys.setswitchinterval sys.settrace sys.setprofile gc warnings logging.basicConfig
        logging.config logging.disable logging.captureWarnings logging.addLevelName logging.setLoggerClass
        logging.getLogger() logging.info logging.warning logging.error logging.debug random.seed
        decimal.setcontext decimal.getcontext socket.setdefaulttimeout matplotlib.use mimetypes.init
        faulthandler numpy.seterr pandas.set_option""",
    "pure": """builtins re typing typing_extensions collections functools itertools operator dataclasses enum abc
        logging.getLogger logging.Formatter logging.NullHandler logging.StreamHandler decimal datetime fractions math
        string types uuid.UUID pathlib os.path contextvars weakref threading.Lock threading.RLock threading.local
        threading.Event threading.Condition threading.Semaphore contextlib inspect textwrap struct copy json base64
        hashlib hmac asyncio.Lock unittest pytest numbers zoneinfo urllib.parse html argparse.ArgumentParser
        configparser.ConfigParser ast dis io.StringIO io.BytesIO array bisect heapq statistics keyword
        ipaddress binascii unicodedata secrets.token_hex queue sys.intern sys.getsizeof sys.version_info msgspec attr
        attrs pydantic numpy hypothesis django.utils.translation""",
}  # fmt: skip
_ECMASCRIPT = {
    "network": "fetch XMLHttpRequest WebSocket EventSource http https http2 net tls dgram dns axios",
    "process": """child_process process.exit process.kill process.chdir process.nextTick setTimeout setInterval
        setImmediate queueMicrotask requestAnimationFrame eval worker_threads cluster Worker vm alert""",
    "io": "console fs fs/promises readline process.stdout process.stderr process.stdin indexedDB sqlite3 prompt",
    "environment": "process.env process.cwd process.argv os dotenv location navigator import.meta.env",
    "registration": """window.addEventListener document.addEventListener addEventListener process.on process.once
        customElements.define self.addEventListener navigator.serviceWorker.register describe it test beforeEach
        afterEach beforeAll afterAll jest vi""",
    "state": "document window localStorage sessionStorage history globalThis Object.assign",
    "pure": """Function Object Array Map Set WeakMap WeakSet RegExp Date Error TypeError RangeError SyntaxError URL
        URLSearchParams Promise Symbol Number String Boolean BigInt JSON Math Proxy Intl Uint8Array Int8Array
        Uint16Array Int32Array Uint32Array Float32Array Float64Array ArrayBuffer DataView TextEncoder TextDecoder
        parseInt parseFloat isNaN encodeURIComponent decodeURIComponent AbortController path url util events
        structuredClone require React.createContext react zod window.matchMedia""",
}  # fmt: skip
_TABLES = {
    language: {entry: effect for effect, entries in table.items() for entry in entries.split()}
    for language, table in (("python", _PYTHON), ("ecmascript", _ECMASCRIPT))
}

# Decorators that only wrap or mark what they stand on.
PURE_DECORATORS = re.compile(
    r"(?:\w+\.)*(?:property|cached_property|staticmethod|classmethod|abstractmethod|dataclass|dataclasses?|define|frozen"
    r"|wraps|lru_cache|cache|total_ordering|overload|override|final|runtime_checkable|contextmanager|asynccontextmanager"
    r"|singledispatch|singledispatchmethod|setter|getter|deleter|no_type_check|deprecated|unique|skip|skipIf|skipUnless"
    r"|parametrize|mark|given|settings|patch|expectedFailure|type_check_only|coroutine|partialmethod)\Z"
)
# Methods and functions that by their names hand something to somebody who keeps it.
REGISTERING = re.compile(
    r"(?:un)?register(?:_\w+|[A-Z]\w*)?|connect|subscribe|add_(?:handler|listener|hook|command|url_rule|route|filter"
    r"|middleware|resource|argument|parser|type|plugin|renderer|extension)|addEventListener|addListener|on|once|use"
    r"|route|receiver|listens_for|task|shared_task|command|group|fixture|hookimpl|errorhandler|exception_handler"
    r"|before_request|after_request|simple_tag|inclusion_tag|filter|action|subscriber|event|on_event|middleware"
)
# Methods that change what they are called on.
CHANGING = frozenset(
    {
        "append", "extend", "insert", "update", "setdefault", "add", "remove", "discard", "pop", "popitem", "clear",
        "appendleft", "extendleft", "sort", "reverse", "push", "unshift", "shift", "splice", "set", "delete", "fill",
    }
)  # fmt: skip


@cache
def find_outside(name: str, language: str) -> str:
    """The effect of a dotted name from outside; "" where the tables do not say."""
    family = "python" if language == "python" else "ecmascript"
    if family == "ecmascript":
        name = name.removeprefix("builtins.").removeprefix("node:")
    table, at = _TABLES[family], name
    while at:
        if at in table:
            return table[at]
        cut = max(at.rfind("."), at.rfind("()"))
        at = at[:cut] if cut > 0 else ""
    return ""
