"""The common words that a lesson sentence may be made of: plain English, in lower case.

- A word that is not here never enters a sentence as itself: `remem.ingest.scrub` puts a placeholder for it.
- The words are those of error messages and of talk about programs. Names of people, places, firms, animals,
  plants, foods, colours and stars stay out, even where they are also ordinary words: people call their
  children, machines and repositories so. ("will" and "may" are missing for that reason.)
- ``FIXED`` words stand in one form; ``TERMS`` also in the regular forms of a noun or a verb.
- ``FRAME`` words are no content: a message of nothing else says nothing.
- The sets are data. What they mean for a sentence is said in `remem.ingest.scrub`.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FRAME: Final = _words("""
    a about above across after again against ain't all along already also always am among an and another any
    anyone anything anywhere apart are aren't around as at away back be because been before behind being below
    beneath beside besides between beyond both but by can can't cannot could couldn't currently did didn't do does
    doesn't doing don't done due during each either else even ever every everyone everything everywhere except few
    fewer finally for from further had hadn't has hasn't have haven't having he hence her here hers herself hey
    him himself his how however i i'd i'll i'm i've if in inside instead into is isn't it it'd it'll it's its
    itself just later least less let let's like likely many maybe me might mine more most much must my myself near
    neither never next no nobody none nor not nothing now nowhere of off often oh ok okay on once one only onto or
    other others otherwise our ours ourselves out outside over own past per perhaps please possibly probably quite
    rather really same several shall she should shouldn't since so some someone something sometimes somewhere soon
    still such than thank thanks that that'd that's the their theirs them themselves then there there's therefore
    these they they'd they'll they're they've thing things this those though through thus to today together
    tomorrow too toward towards twice under unless until up upon us usually very via was wasn't way we we'd we'll
    we're we've well were weren't what what's when where where's whether which while who who's whole whom whose
    why with within without won't would wouldn't yeah yes yesterday yet you you'd you'll you're you've your yours
    yourself hmm wait
""")

_PLAIN: Final = _words("""
    able absent absolute abstract accidental active actual actually additional alive alone alphabetic alternative
    although ambiguous anonymous asynchronous atomic automatic automatically available bad best better big bigger
    binary blank boolean brand-new broken bogus busy careful case-insensitive case-sensitive certain cheap circular
    clean clear closed common compatible completely complex concurrent confused consistent convenient
    correctly corrupt critical current custom cyclic dead deep deeper default deprecated different difficult
    directly dirty dry dynamic early earlier easier easily easy eight eighth enough especially
    exact exactly executable existing expensive experimental explicit explicitly external extra false fast faster
    fatal few fifth final fine first five flaky following foreign forth forward four fourth frequent fresh
    full fully fundamental funny generic global good greater half hard hardcoded harmful harmless heavy hidden high
    higher highest historical horizontal huge hundred identical idle illegal immediate immediately immutable
    implicit implicitly important impossible inactive incompatible incomplete inconsistent incorrect incorrectly
    indirect ineffectual inferred infinite initial inline inner insecure insensitive insufficient interactive
    intermittent internal internally invalid invisible irrelevant kind known large larger largest late latest lazy
    left legacy legal local locally long longer loose low lower lowest main major malformed mandatory manual
    manually maximum mere middle minimal minimum minor missing modern multiple mutable mutual native necessary
    negative nested never-ending new newer newest nil nine normal normally null null-terminated numeric obsolete
    obvious odd old older oldest one-line optional ordinary original originally outer parallel partial partially
    particular permanent permanently persistent physical plain plausible pointless positive possible potential
    potentially practical previous previously primary prior private proper properly public quick quickly
    random rare rarely raw read-only readable ready real recent recently recursive recursively redundant regular
    relative relevant reliable remote repeatedly required respective responsible restricted right rough safe safely
    secondary secure seen self self-signed sensitive separately sequential serious seven severe shallow
    short shorter shortest similar simple simpler simplest simply simultaneous single six slightly slower
    slowest slowly small smaller smallest smart soft sorry special specific specifically stable stale standalone
    standard static strange strict strictly strong subsequent successful successfully sudden suddenly sufficient
    suitable sure suspicious synchronous synthetic temporarily temporary ten terrible third thousand three tiny
    top-level total transient transitive trivial true truthy two typical ugly unable unambiguous unauthorized
    unavailable unbalanced unbound uncaught unchanged unclear unclosed uncommitted undefined understandable
    unexpected unexpectedly unfortunately unfinished unformatted unhandled unhashable unhealthy uninitialized
    unique uniquely unknown unlikely unmatched unmerged unnamed unnecessary unneeded unpinned unpushed unreachable
    unread unreadable unrecognized unreferenced unrelated unresolvable unresolved unsafe unsaved unset unsigned
    unspecified unstable unstaged unsupported unterminated untracked untrusted unused unusual unwrapped upcoming
    upper upstream useful useless valid variadic various verbose vertical visible weak weird wide wider working
    world-writable worse worst writable wrong zero
    i/o n/a and/or true/false yes/no read/write client/server tcp/ip input/output if-else key-value non-zero
    non-empty non-interactive non-existent out-of-date up-to-date out-of-range end-of-file line-ending off-by-one
    built-in command-line fast-forward non-fast-forward dry-run pre-commit post-commit re-run co-author run-time
    compile-time type-check type-checked third-party
    began begun bound broke brought built came caught chose chosen drawn fell fallen forbidden forgot
    forgotten found froze frozen gave given goes going gone got gotten held hid hung kept knew laid lain lay led
    left lost made meant met overridden overrode overwritten overwrote paid put ran read rebuilt reread rewritten
    rewrote said sat saw seen sent shown shut slept sold spent split spoke spun stood stuck taken taught
    threw thought thrown told took tried underlying understood undid undone unwound went withdrawn won woke
    written wrote children criteria indices matrices vertices data metadata media
""")

FIXED: Final = FRAME | _PLAIN

TERMS: Final = _words("""
    complete separate empty direct equal present double slow free put respect harness dep ref distribution pod ingress
    assignable unassignable externally manage managed publickey blocklist allowlist sandboxed cluster frontmatter
    quotation stacktrace dotfile hotfix changeset monorepo linting formatter dangle dangling orphan orphaned
    abort accept access account achieve acquire action activate adapter add address adjust affect agent agree
    alert alias align alignment allocate allocation allow alternative amount analyse analyze annotate annotation
    answer api app appear append application apply approach approval approve architecture archive arg argument
    arithmetic array arrive arrow artifact ask assert assertion assign assignment assume assumption asterisk attach
    attachment attempt attribute audit author authenticate authentication authority authorization authorize
    availability avoid backend background backslash backspace backtick backtrace backup balance bandwidth banner
    base baseline batch become begin behavior behaviour believe belong benchmark bind binding bit blob block body
    bool boolean boot bootstrap bottleneck boundary bounds box brace bracket branch breakage breakpoint break
    bring browse browser buffer bug build builder bump bundle bundler button bypass byte cache calculate
    calculation call callback caller cancel cancellation candidate capability capacity capture care carry cascade
    case cast catalog catch cause certificate chain challenge change changelog channel char character check
    checker checkout checkpoint checksum child choice choose chunk circumstance class cleanup clause clean clear
    click client clipboard clock clone close cloud cluster code codebase coerce coercion collect collection
    collide collision colon column combination combine come comma command comment commit communicate community
    company comparison compare compatibility compilation compile compiler complain completion complexity component
    compose compress compression compute computer concatenate concept concern conclude conclusion concurrency
    condition config configuration configure confirm confirmation conflict confuse confusion connect connection
    consequence consider console constant constraint construct constructor consume consumer contain container
    content context continuation continue contract contributor contribute control controller convention
    conversation conversion convert cookie copy core correct correction corrupt corruption count counter cover
    coverage crash create creation creator credential cron cursor customer cycle daemon damage dashboard database
    dataset date day deadline deadlock deal debug debugger decide decimal decision declaration declare decline
    decode decoder decorator decrease decrypt deduplicate define definition degrade delay delegate delete deletion
    delimiter deliver delta demo deny depend dependency deploy deployment depth dereference derive describe
    description descriptor deserialize design desktop destination destroy destructor detach detail detect
    detection determine develop developer development device diagnose diagnosis diagnostic dialog dictionary diff
    differ difference digest digit dimension directory disable disallow disappear discard disconnect discover
    discovery discuss disk display distribute distribution divide division docs document documentation domain
    download downstream draft drift driver drop dump duplicate duplication duration edge edit editor effect
    effort element email embed emit emulator enable encode encoder encoding encounter encrypt encryption end
    endpoint enforce engine enlarge ensure enter entity entrypoint entry enum environment epoch equality error
    escape estimate evaluate evaluation event evict evidence examine example exceed exception exclude exclusion
    execute execution executor exercise exhaust exist existence exit expand expansion expect expectation expiration
    expire expiry explain explanation export expose expression extend extension extract extraction fact factory
    fail failure fall fallback fault feature feedback feel fetch field figure file filename filesystem fill filter
    find finish firewall fit fix fixture flag flow flush focus folder follow font footer forbid force fork form
    format formatter forget formatting formula fraction fragment frame framework freeze frequency frontend
    function functionality garbage gap gateway gather generate generation generator get getter give glob go goal
    grammar graph group grow growth guarantee guard guess guide guideline handle handler handshake hang happen
    hardware hash hashing head header health heap heartbeat height help helper hide hierarchy highlight hint
    history hit hold home hook host hostname hour icon id idea identifier identify identity ignore image
    implement implementation implication imply import importance improve improvement include inclusion increase
    increment indent indentation index indicate indicator infer inference infrastructure info inform information inherit
    inheritance initialization initialize initializer inject injection inode input inquiry insert insertion inspect
    inspection install installation installer instance instantiate instruction integer integrate integration
    integrity intend intention interact interaction interest interface interpolate interpolation interpret
    interpreter interrupt interval introduce introspection invalidate inventory investigate investigation invocation
    invoke involve isolate isolation issue item iterate iteration iterator job join journal jump keep kernel key
    keyboard keyword kill know knowledge label lack lambda language latency launch launcher layer layout lead leak
    learn leave length lesson letter level lexer library license lifecycle lifetime lift limit limitation line
    link linkage linker lint linter list listen listener literal live load loader locale locate location lock
    lockfile log logger logging logic login logout look lookup loop lose loss machine macro mail maintain
    maintainer maintenance make manage management manager manifest manipulate manner map mapping margin marker mask
    match matcher mean measure measurement mechanism meet member memory mention menu merge message method metric
    middleware migrate migration millisecond minute mirror mismatch miss mistake mock mode model modification modifier
    modify module moment monitor month mount mouse move movement mutate mutation mutex name namespace navigate
    navigation need negotiate nest network newline node noise normalize notation note notice notification notify
    notion null number object observation observe obtain occupy occur occurrence offer offset open operand operate
    operation operator opinion optimization optimize option order organization origin outcome outline output
    overflow overhead overlap overload override overwrite owner ownership pack package packet padding page
    pagination pair panel panic paragraph param parameter parent parenthesis parse parser part parsing participant
    partition party pass passphrase password paste patch path pathspec pattern pause payload peer pending
    percent percentage perform performance period permission permit persist person phase phrase pick piece pin ping
    pipe pipeline pixel place placeholder plan platform play plugin point pointer policy poll pool pop popup port
    portion position post practice preference prefer prefix prepare prepend prerequisite presence preserve press
    prevent preview principle print printer priority privilege problem procedure proceed process processor produce
    producer product production profile program programmer progress prohibit project promise promote prompt proof
    propagate property propose prose protect protection protocol prototype prove provide provider provision proxy
    prune publish publisher pull punctuation purge purpose push quality quantity query question queue quit quota
    quotation quote quoting race raise range rate ratio reach reaction read reader reality realize reason reassign
    rebase rebuild recall receive receiver recipient recognize recommend recommendation reconnect record recover
    recovery recurse recursion redeclare redefine redirect redirection redo reduce reduction refactor refactoring
    refer reference refine reflect reflection refresh refuse regenerate regex region register registration
    registry regression reject rejection relate relation relationship release reload rely remain remainder remark
    remember reminder removal remove rename render renderer reopen repair repeat repetition replace replacement
    replica replicate reply repo report repository represent representation reproduce reproduction request require
    requirement reschedule resend reset resize resolution resolve resolver resource respond response rest restart
    restore restrict restriction result resume retain retention retrieve retry return reuse revert review reviewer
    revision revoke rewind rewrite role roll rollback root rotate round rounding route router routine row rule run
    runner runtime sample sandbox sanitize satisfy save say scale scan scanner scenario schedule scheduler schema
    scheme scope score screen screenshot script scroll search second secret section sector see
    seed seek seem segment select
    selection selector semantic semaphore semicolon send sender sense sentence separator sequence serialization
    serialize serializer series serve server service session set setter setting setup shadow shape share shell
    shift ship shortcut show shrink shutdown side sign signal signature silence simplify simulate simulation site
    situation size skeleton skill skip slash sleep slice slot snapshot snippet socket software solution solve sort sound
    source space specification specify speed spell spelling spend split squash stack stage start startup stash
    state statement station statistic status stay step stop storage store story strategy stream string strip struct
    structure stub style subclass subcommand subdirectory subject submission submit submodule subprocess subscribe
    subscription subset substitute substitution substring subtract succeed success suffer suffix suggest suggestion
    suite sum summarize summary supply support suppose suppress suspect suspend swap switch symbol symlink symptom
    sync synchronize syntax system tab table tag tail take talk target task team technique telemetry tell template
    terminal terminate termination test tester text theme theory think thread threshold throttle throughput throw
    tick ticket time timeout timer timestamp timezone title toggle token tokenizer tool toolchain topic total
    touch trace traceback track tracker traffic trailer train transaction transfer transform transformation
    transition translate translation transmission transport trap traverse treat tree trigger trim truncate
    truncation trust truth try tuple turn tutorial tweak type typecheck typo underscore understand undo union unit
    unlink unlock unmarshal unmount unpack unwrap unzip update upgrade upload usage use user utility validate
    validation validator value variable variant variation vector verb verification verify version video view
    viewer violate violation visit visibility volume vulnerability wait walk want warn warning waste watch watcher
    weakness website weight whitespace widget width wildcard window wire wonder word work workaround worker
    workflow workspace worktree worry wrap wrapper write writer year yield zip zone
""")

# Words which a sentence shows in a spelling of their own.
SPELLED: Final = {
    word.lower(): word
    for word in """
    API APIs ASCII AST AWS CD CI CLI CORS CPU CRLF CSRF CSS CSV CVE DB DNS DOM DST EOF EOL FIFO FFI GC GDPR GPG GPU
    GUI GUID HEAD HTML HTTP HTTPS ICU ID IDE IDs IO IP IPC JIT JSON JSONL JSX JVM JWT LF LSP MCP MD5 MIME NaN NFC
    NFS NTP OCI OOM ORM OS PDF PEM PGP PID PNG PR PRs PTY QA RAM README REPL REST RGB RPC RSS SDK SHA SHA1 SHA256
    SIMD SMTP SQL SSE SSH SSL SSO STDERR STDIN STDOUT SVG TCP TDD TLS TOML TTL TTY UDP UI URI URL URLs UTC UTF
    UTF-8 UTF-16 UUID UUIDs UX VCS VM VPN WASM WSL XHR XML XSS YAML GitHub GitLab Bitbucket Unicode Linux macOS
    Windows Unix POSIX WebSocket OAuth GraphQL gRPC IPv4 IPv6 TypeScript JavaScript Python Java PHP C++ Kotlin Lua
    Postgres PostgreSQL MySQL SQLite MongoDB
    """.split()
}
