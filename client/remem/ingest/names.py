"""The public names that a lesson sentence may contain: programs, tools of agents, error classes and codes.

- A name counts only in its own spelling, and only where `remem.ingest.scrub` looks for one.
- Names that are also first names of people (of a language, of a browser) are left out.
- The sets are data. What they mean for a sentence is said in `remem.ingest.scrub` and `remem.ingest.sentence`.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The tools that coding agents give their models: their name in an event's title, in lower case, and as we say it.
TOOLS: Final = {
    name.lower(): name
    for name in """
    Bash BashOutput KillShell Read Edit MultiEdit Write NotebookEdit NotebookRead Grep Glob LS Task Agent Skill
    TodoWrite TodoRead WebFetch WebSearch ExitPlanMode EnterPlanMode AskUserQuestion SlashCommand ToolSearch LSP
    shell local_shell exec_command write_stdin apply_patch update_plan view_image
    run_shell_command read_file read_many_files write_file replace search_file_content grep_search list_directory
    glob google_web_search web_fetch save_memory write_todos
    list patch find ls todowrite todoread webfetch codesearch execute_bash fs_read fs_write str_replace_editor
    run_terminal_cmd edit_file search_replace codebase_search file_search delete_file list_dir
    """.split()
}

PROGRAMS: Final = _words("""
    act actionlint alembic ansible ansible-lint ansible-playbook apk apt apt-get autoconf automake awk aws az bandit
    bash bazel biome brew brotli buf buildah bun bundle bundler bunx bzip2 cabal cargo cat cc chmod chown
    circleci clang clang-format clang-tidy clang++ clippy clippy-driver cmake composer conda corepack cp cron crontab
    ctest curl cut cypress dart date dd deno df diff dig dnf docker docker-compose dotnet du echo egrep elixir env
    esbuild eslint exec export expo fastlane fd ffmpeg fgrep file find firebase fish flake8 flutter flyway free g++
    gcc gcloud gdb gem gh ghc git git-lfs glab go gofmt gofumpt goimports golangci-lint gradle gradlew grep gunicorn
    gunzip gzip hadolint head helm heroku hg id ifconfig install ip iptables isort java javac javadoc jest join jq
    journalctl just k6 k9s kill kind kotlinc ktlint kubectl kustomize ld less lint-staged lldb ln ls lsof make
    man markdownlint md5 minikube mise mkdir mocha more mv mvn mypy mysql mysqldump nc netstat next ng nginx ninja
    nix node nodemon nohup nox npm npx nslookup nuget nx openssl oxlint pacman parcel paste patch pdm perl pg_dump
    pg_restore php phpcs phpstan phpunit ping pip pip3 pipenv pipx pkg-config playwright pnpm podman poetry
    poweroff pre-commit prettier prisma prisma-client printf protoc ps psql pulumi pwd pwsh pycodestyle pydocstyle
    pyenv pyflakes pylint pyright pytest python python2 python3 qemu rails rake react-scripts readlink realpath
    redis-cli redis-server rg rm rmdir rollup rspec rsync rubocop ruff rust-analyzer rustc rustfmt
    rustup sbt scp sed seq serverless sh sha256sum shellcheck shfmt sleep snap sort source split sqlfluff sqlite3 ssh
    ssh-add ssh-agent ssh-keygen stat strace stylelint su sudo svelte-check svn swc systemctl tail tar task tee
    terraform terragrunt test timeout tmux top touch tox tr tree ts-node tsc tslint tsx tsup turbo type uglifyjs
    ulimit uname uniq unzip uv uvicorn uvx valgrind vercel vi vim vite vitest vue-tsc wasm-pack wc webpack wget which
    who whoami wrangler xargs xcodebuild xcrun xz yamllint yapf yarn yq zig zip zsh
""")

SUBCOMMANDS: Final = _words("""
    cat-file cherry-pick commit-tree for-each-ref format-patch fsck hash-object ls-files ls-remote ls-tree merge-base
    merge-file mergetool name-rev pack-refs read-tree reflog rev-list rev-parse show-ref sparse-checkout symbolic-ref
    update-index update-ref write-tree bisect blame checkout clone fetch gc mv notes rebase stash submodule worktree
    dlx exec init ci audit publish uninstall login logout rollout mod vet tidy compose
""")

LANGUAGES: Final = {
    "go": "Go", "py": "Python", "pyi": "Python", "ts": "TypeScript", "tsx": "TypeScript", "mts": "TypeScript",
    "js": "JavaScript", "jsx": "JavaScript", "mjs": "JavaScript", "cjs": "JavaScript", "rs": "Rust", "java": "Java",
    "kt": "Kotlin", "rb": "Ruby", "php": "PHP", "c": "C", "h": "C", "cc": "C++", "cpp": "C++", "hpp": "C++",
    "cs": "C#", "sh": "shell", "bash": "shell", "yml": "YAML", "yaml": "YAML", "json": "JSON", "toml": "TOML",
    "sql": "SQL", "css": "CSS", "scss": "SCSS", "html": "HTML", "vue": "Vue", "svelte": "Svelte", "tf": "Terraform",
    "md": "Markdown", "lua": "Lua", "pl": "Perl", "zig": "Zig", "dart": "Dart", "ex": "Elixir", "proto": "protobuf",
}  # fmt: skip

EXTENSIONS: Final = LANGUAGES.keys() | _words("""
    txt log csv xml ini cfg conf lock env jsonl png jpg jpeg gif svg pdf zip gz tar tgz whl so dll dylib exe bin
    db sqlite bak tmp pem crt pub out err patch diff snap map wasm ipynb rst adoc gradle properties mod sum
""")

FILES: Final = _words("""
    .bashrc .dockerignore .editorconfig .env .env.example .eslintrc .eslintrc.js .eslintrc.json .flake8 .gitattributes
    .gitignore .gitmodules .golangci.yml .golangci.yaml .npmrc .nvmrc .pre-commit-config.yaml .prettierrc .profile
    .python-version .tool-versions .zshrc .git .github .venv .netrc .ssh AGENTS.md CHANGELOG.md CLAUDE.md
    CMakeLists.txt CODEOWNERS CONTRIBUTING.md Cargo.lock Cargo.toml Dockerfile GEMINI.md Gemfile Gemfile.lock
    LICENSE Makefile Pipfile Procfile README.md Vagrantfile __init__.py __main__.py babel.config.js build.gradle
    composer.json compose.yaml conftest.py docker-compose.yml docker-compose.yaml eslint.config.js eslint.config.mjs
    go.mod go.sum go.work index.html jest.config.js jest.config.ts jsconfig.json manage.py mise.toml mypy.ini
    next.config.js package-lock.json package.json playwright.config.ts pnpm-lock.yaml pnpm-workspace.yaml pom.xml
    pyproject.toml pytest.ini requirements.txt ruff.toml setup.cfg setup.py settings.json tailwind.config.js tox.ini
    tsconfig.json uv.lock vite.config.js vite.config.ts vitest.config.ts webpack.config.js yarn.lock node_modules
    site-packages ~/.bashrc ~/.ssh ~/.zshrc ~/.netrc /dev/null /dev/tty /dev/stdin /dev/stdout /dev/stderr
    /etc/hosts /proc /tmp /usr/bin/env
""")

OPTIONS: Final = _words("""
    abbrev abort all allow-empty allow-unrelated-histories amend assume-yes author auto backend base batch body branch
    break-system-packages build cache cached capture check clean color config continue copy count create cwd
    cov daemon debug default delete depth detach diff dir directory draft dry-run edit editable env exclude exit-code
    extra fail-fast ff-only file files fix follow force force-with-lease format frozen-lockfile full global grep group
    head help host hook-stage ignore ignore-scripts include index-url init input install interactive isolated
    jobs json keep-going label legacy-peer-deps limit line-number list locked log-level long max-depth memory merge
    message mode name name-only no-build no-cache no-cache-dir no-color no-commit no-deps no-edit no-ff no-fix
    no-install no-pager no-prune no-verify no-warn-script-location noemit noEmit null oneline only onto order output
    parallel passthrough patch path platform platforms port porcelain prefix pretty print privileged profile project
    progress prune pull push quiet read-only rebase recursive registry release replace require reset retries rm root
    run save save-dev scope secret set-upstream short show signoff silent since skip sort stage staged stat stdin
    strict subject tag tags target test test-timeout timeout tls tty type unified unsafe until update upgrade url
    user user-agent validate verbose verify version volume wait warn watch watchAll web wheel workdir write yes zero
""")

ERROR_NAMES: Final = _words("""
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError
    BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
    ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError ExceptionGroup
    FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning
    IndentationError IndexError InterruptedError IsADirectoryError JSONDecodeError KeyError KeyboardInterrupt
    LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError
    OverflowError PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError
    ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning
    SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
    UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError ZeroDivisionError CancelledError
    CalledProcessError TimeoutExpired InvalidStateError IncompleteReadError BadZipFile SSLError SSLCertVerificationError
    OperationalError IntegrityError ProgrammingError DatabaseError InterfaceError ValidationError HTTPError URLError
    RequestException ReadTimeout ConnectTimeout ConnectError DecodingError SettingsError ResolutionImpossible
    EvalError RangeError URIError AggregateError DOMException AbortError InternalError
    UnhandledPromiseRejection UnhandledPromiseRejectionWarning CompileError LinkError
    NoMethodError LoadError ArgumentError StandardError FrozenError
    NullPointerException ClassNotFoundException NoClassDefFoundError ClassCastException IllegalArgumentException
    IllegalStateException IndexOutOfBoundsException ArrayIndexOutOfBoundsException IOException OutOfMemoryError
    StackOverflowError UnsupportedOperationException ConcurrentModificationException NoSuchMethodError
    FileNotFoundException SocketTimeoutException InterruptedException NumberFormatException RuntimeException
    ERESOLVE EJSONPARSE ELIFECYCLE EBADENGINE ENOENT EACCES EPERM EEXIST ENOTDIR EISDIR EINVAL EMFILE ENFILE ENOSPC
    EROFS EPIPE EAGAIN EBUSY ENOTEMPTY ENOTFOUND EAI_AGAIN ECONNREFUSED ECONNRESET ECONNABORTED ETIMEDOUT
    EADDRINUSE EADDRNOTAVAIL EHOSTUNREACH ENETUNREACH ENOMEM EXDEV ELOOP ENAMETOOLONG ENOSYS ENOTSUP ESRCH E2BIG
    EINTR EIO ECHILD EDEADLK EFAULT ENODEV ENOTCONN EPROTO EUSAGE E404 E401 E403 ERR_MODULE_NOT_FOUND
    ERR_REQUIRE_ESM ERR_UNKNOWN_FILE_EXTENSION ERR_PACKAGE_PATH_NOT_EXPORTED ERR_INVALID_ARG_TYPE
    ERR_UNSUPPORTED_DIR_IMPORT ERR_OSSL_EVP_UNSUPPORTED MODULE_NOT_FOUND ERR_PNPM_OUTDATED_LOCKFILE
    SIGKILL SIGTERM SIGINT SIGSEGV SIGABRT SIGPIPE SIGHUP SIGBUS SIGILL SIGFPE SIGQUIT SIGUSR1 SIGUSR2 SIGTRAP
    SQLITE_BUSY SQLITE_LOCKED SQLITE_READONLY SQLITE_CORRUPT CERTIFICATE_VERIFY_FAILED CrashLoopBackOff
    ImagePullBackOff ErrImagePull OOMKilled
""")

# The rules that linters and type checkers name behind a message.
RULES: Final = _words("""
    asciicheck bodyclose containedctx contextcheck copylocks cyclop deadcode depguard dogsled dupl dupword
    durationcheck embeddedstructfieldcheck errcheck errchkjson errname errorlint exhaustive exhaustruct
    exportloopref forbidigo forcetypeassert funlen gci gochecknoglobals gochecknoinits gocognit goconst gocritic
    gocyclo godot godox goerr113 gofumpt goheader gomnd gomoddirectives goprintffuncname gosec gosimple
    govet iface importas ineffassign interfacebloat intrange ireturn lll loggercheck maintidx makezero mirror mnd
    musttag nakedret nestif nilerr nilnesserr nilnil nlreturn noctx nolintlint nonamedreturns nosprintfhostport
    paralleltest perfsprint prealloc predeclared promlinter reassign recvcheck revive rowserrcheck sloglint
    spancheck sqlclosecheck staticcheck structcheck stylecheck tagliatelle testifylint testpackage thelper
    tparallel typecheck unconvert unparam unused usestdlibvars usetesting varcheck varnamelen wastedassign whitespace
    wrapcheck wsl
    no-unused-vars no-undef no-console no-explicit-any no-empty no-floating-promises no-misused-promises prefer-const
    no-unsafe-assignment no-restricted-imports no-shadow eqeqeq exhaustive-deps rules-of-hooks no-extra-semi
    no-require-imports no-var-requires consistent-type-imports
    arg-type assignment attr-defined call-arg call-overload import-untyped import-not-found index misc name-defined
    no-any-return no-redef no-untyped-call no-untyped-def operator override return-value type-arg union-attr
    unused-ignore var-annotated valid-type
    dead_code unused_variables unused_imports unused_mut non_snake_case needless_return too_many_arguments
""")

# Parameters, calls and variables that have one public meaning.
IDENTIFIERS: Final = _words("""
    require-error ifElseChain
    replace_all old_string new_string file_path posix_spawn spawn open openat read write stat lstat mkdir rmdir
    unlink rename scandir readdir connect bind accept listen getaddrinfo execve fork exec mmap chdir chmod chown
    INVALID_CHARACTER PATH HOME PYTHONPATH NODE_ENV NODE_PATH GOPATH GOROOT GOFLAGS CGO_ENABLED JAVA_HOME LANG TERM
    GITHUB_TOKEN CI DISPLAY LD_LIBRARY_PATH VIRTUAL_ENV npm_config_cache HEAD FETCH_HEAD ORIG_HEAD MERGE_HEAD
    exit_code apply_patch
    Angular Ansible Bash Chrome Chromium Composer Django Docker ESLint Express FastAPI Firefox Flask Git Gradle Homebrew
    Jest Kubernetes Maven Node Node.js Next.js Nginx OpenSSL OpenSSH Playwright Postgres Prettier Prisma Pydantic PyPI
    Pytest React Redis Rollup SQLAlchemy Spring Svelte Tailwind Terraform Vite Vitest Vue Webpack Xcode Zsh
""")

# Words of programming languages, for where a message speaks of a type or a keyword.
KEYWORDS: Final = _words("""
    NoneType int str bytes list dict tuple set float bool object function undefined null nil None True False self
    any never unknown string number boolean void interface struct enum map slice chan error module async await
    const let var def class return import export default require package func fn impl trait pub mut static public
    private protected async/await nonlocal yield lambda __init__ __main__ <string> <stdin> <module> <anonymous>
    <top-level> <unknown> stdin stdout stderr argv localhost
""")

PACKAGES: Final = _words("""
    aiohttp anyio argparse asyncio attrs axios babel bcrypt boto3 bs4 celery cffi chai chalk charset_normalizer click
    collections commander contextlib cors crypto cryptography csv ctypes dataclasses datetime django docker dotenv
    encoding/json enum errors esbuild eslint express fastapi flask fmt fs fs/promises functools gevent glob greenlet
    grpc gunicorn hashlib html http httpx importlib io itertools jinja2 jsdom json jsonschema jwt keras langchain lodash
    logging lxml markdown math matplotlib mongoose moto multiprocessing mypy net net/http next node-fetch node:fs
    node:path node:test numpy openai openpyxl os os.path os/exec packaging pandas path path/filepath pathlib pg pip
    pillow pkg_resources playwright pluggy polars prisma prometheus_client protobuf psutil psycopg2 pydantic
    pydantic_settings pytest pytest_asyncio pytz pyyaml random re react react-dom react-native redis redux regex reqwest
    requests rxjs scikit-learn scipy seaborn selenium serde serde_json setuptools sharp shutil sklearn
    socket sqlalchemy sqlite3 ssl starlette strconv strings subprocess svelte sync sys tailwindcss tempfile tensorflow
    threading time tokio toml tomllib torch tqdm transformers typer typescript typing typing_extensions ujson
    unittest urllib urllib3 util uuid uvicorn vite vitest vue webpack werkzeug wheel ws yaml zlib zod zoneinfo
    @types/node @types/react @types/jest
""")

# The error codes that compilers and linters document: a prefix of theirs, then digits.
CODE: Final = "|".join(
    r"""
    E0\d{3} TS\d{4,5} SC[123]\d{3} CS\d{4} C[234]\d{3} LNK[12]\d{3} DL[34]\d{3} G[1-7]\d{2} SA[1-9]\d{3} ST1\d{3}
    [EWFNBSCD]\d{3} RUF\d{3} UP\d{3} PLR\d{4} SIM\d{3} P[0-3]\d{3} ORA-\d{5} MSB\d{4} NU1\d{3} NETSDK\d{4}
    """.split()
)

HTTP_STATUSES: Final = _words("""
    400 401 402 403 404 405 406 407 408 409 410 411 412 413 414 415 416 417 418 421 422 423 424 425 426 428 429 431 451
    500 501 502 503 504 505 506 507 508 511
""")
