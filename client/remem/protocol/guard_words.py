"""The words of the imperative guard: plain English, in lower case.

- A verb stands in exactly one of three sets, by what its bare form is at the head of an English sentence:
  ``VERBS`` (hardly ever anything but an order), ``MIXED`` (an order, unless what follows makes it a name: "Make
  fails"), ``NOUNS`` (a noun or an adjective, unless what follows can only be an object: "Test the build").
- Words which name a fault (crash, hang, leak, timeout) and verbs whose subject "I" is often dropped (hope, love,
  need, want) are in none of them: they open observations.
- The sets are data. What they mean for a sentence is said in `remem.protocol.guard`.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[str]:
    return frozenset(" ".join(pair.split()) for pair in text.split(","))


VERBS = _words("""
    abandon abide abolish abstain accelerate accentuate accept accommodate accompany accomplish accumulate
    accuse achieve acknowledge acquaint acquire activate adapt add adhere adjust administer admit adopt adore
    advertise advise aggregate agree align allege allocate allow allowlist alter amass amend amplify amuse
    analyse analyze annotate announce anticipate apologise apologize append apply appoint apprehend approve
    argue arouse arrange ascertain ask aspire assemble assert assess assign assist assume assure atone attach
    attain attend attest attribute augment authenticate authorise authorize auto-format autocomplete
    autoformat autogenerate automate avoid await awaken backport backtrack backup bake bargain bash bask
    batch-convert befriend beg begin behave behold believe bend beseech bestow betray beware bind bisect
    blacklist blame bleach blend bless blink blocklist boast boil bombard boost bootstrap borrow bother brace
    brag brainstorm breathe breed brew brighten bring broaden browse bury buy bypass calculate calibrate
    cancel canonicalise canonicalize capitalise capitalize caress carry carve cater cease celebrate centralise
    centralize certify chauffeur cheat checkout cherish cherry-pick chew choose chop chuck circulate
    circumvent cite clamp clap clarify clasp classify cleanse clench click climb cling clutch coax coerce
    collaborate collate collect combine come commemorate commence commend communicate compare compensate
    compile complain comply compose compute conceal concede concentrate conclude conduct confess confide
    configure confine confirm confiscate conform confront congratulate conjure connect conquer conserve
    consider consign consolidate constrain construct consult consume containerise containerize contemplate
    contend continue contribute convene convert convey convince cooperate coordinate copy-paste correspond
    counsel cram crank create creep cringe criticise criticize cross-reference cross-validate crouch crush
    cuddle cultivate curl curtail customise customize cut-and-paste dab daemonise daemonize dampen dangle dare
    darken dazzle deactivate deallocate debunk deceive decide decipher declare declutter decode decommission
    decompile decompress decorate decouple decrypt dedicate deduce deduct dedupe deduplicate deepen defend
    defer define deflate deflect defragment defrost defy degrade delegate delete deliver demolish demonstrate
    denounce deny depart depict deploy deport depose deprecate deprive dereference derive describe deselect
    deserialise deserialize designate desist destroy detach detain detect determine detest develop devise
    devote devour diagnose dictate differentiate dilute dine disable disagree disappear disarm disassemble
    discard discern disclose disconnect discontinue discourage discover discriminate discuss disentangle
    disguise dislodge dismantle dismiss disobey dispel disperse displace dispose disprove disregard disrupt
    dissect dissolve distinguish distract distribute disturb ditch diversify divide divulge dockerise
    dockerize dodge dogfood donate double-check double-click downgrade downplay downvote drag drape draw drown
    dwell e-mail earn eat educate elaborate elect elevate elicit eliminate email embark embed embellish
    embrace emit emphasise emphasize employ empower emulate enable enact encapsulate enclose encode encompass
    encounter encourage encrypt endeavor endeavour endorse endure energise energize enforce engage enhance
    enjoy enlarge enlighten enlist enqueue enrich enrol enroll ensure enter entertain entice entrust enumerate
    equip eradicate erase escalate establish evacuate evade evaluate evict evoke evolve exaggerate examine
    excel exclude excuse execute exempt exfiltrate exfoliate exhale exonerate expand expect expedite expel
    explain explore expose extend exterminate extinguish extract fabricate facilitate fact-check factor
    familiarise familiarize fasten fetch fill finalise finalize find fine-tune flatten flatter flaunt flee
    flick fling flip follow forbid forewarn forfeit forget forgive formulate fortify foster frighten fulfil
    fulfill furnish gargle garnish gather generate get giggle give glorify gnaw go gobble google govern grab
    grasp grate greet grep grin grind groan groom grow growl grumble gulp haggle halt hand-pick harass
    hard-code hardcode harden harness hasten haul heal hear heed hesitate hide hire hoard hoist hold hop
    hotfix hover howl huddle hug hum humiliate hurl hurry hustle hydrate identify ignite ignore illustrate
    imagine immerse impart impede impersonate implement implore imply impose impress imprison improve
    improvise incite include incorporate incur indicate indulge infect infer infiltrate inflate inflict inform
    infuse inhale inhibit initialise initialize initiate inject inline innovate inquire insert insist inspect
    inspire install instantiate instruct insulate insult insure integrate intensify interact intercept
    interfere interlock interpolate interpret interrogate intervene interview intimidate intrigue introduce
    invade invalidate invent invert invest investigate invoke involve isolate itemise itemize iterate jot
    journal juggle jumble jump-start justify juxtapose keep kidnap kindle knead kneel knit lament laminate lay
    learn leave left-click legalise legalize lend lengthen lessen let liberate lighten liquidate listen
    litigate loan loathe locate loosen loot lubricate lurk magnify maintain make manage maneuver manipulate
    marinate marry marvel maximise maximize mediate meditate meet melt memoize memorise memorize mend migrate
    mimic mingle minify minimise minimize miss mistrust mitigate moan mobilise mobilize moderate modernise
    modernize modify moisten monkey-patch monkeypatch motivate mourn mow multiply mumble munch murder muster
    mute mutter nag namespace nap navigate negate neglect negotiate nibble nod nominate normalise normalize
    notarise notarize notify nudge nullify nurture obey obfuscate oblige obscure observe obsess obstruct
    obtain occupy omit operate oppose opt optimise optimize orchestrate organise organize orient originate
    oust outdo outlaw outperform outrun outsource overallocate overcharge overcome overdo overhaul overload
    overlook overpay overreact override oversee overstate overtake overthrow overturn overwrite owe pamper
    parallelise parallelize paraphrase pardon parse participate patronise patronize pave pay peddle peek peel
    penalise penalize penetrate perceive perform perish perpetuate persecute persevere persist personalise
    personalize persuade pester pick pinpoint pip-install pity placate plead pluck plunder poke ponder
    populate possess postpone pour practise praise pray preach preclude precompile precompute preempt prefer
    prefetch preheat preinstall preload prepare prepend preprocess prescribe preserve preside presume pretend
    prevail prevent prioritise prioritize proceed proclaim procure prod prohibit prolong promote proof-read
    proofread propagate propose prosecute prosper protect prove provide provoke prune pry puncture punish
    purge purify pursue put quantify quantise quantize quarantine quarrel quash quell quench quibble
    quickstart quit radiate rally ratify rationalise rationalize re-check re-enable re-export re-import
    re-install re-open re-read re-run reach reactivate read readjust realise realize reallocate reap reapply
    rearrange reassemble reassert reassess reassign reassure rebase rebind reboot rebuff rebuild rebuke rebut
    recalculate recalibrate recall recharge recheck recite reckon reclaim recline recognise recognize recoil
    recollect recommence recompile recompress recompute reconcile reconfigure reconnect reconsider reconstruct
    reconvene recoup recover recreate recruit rectify recuperate recycle redact redeem redefine redeploy
    rederive redesign rediscover redo redouble redownload reduce reenact reencode reencrypt reevaluate
    refactor refer refetch refill refine reflect reformat reformulate refrain refund refurbish refute regain
    regenerate register regrade regroup regulate rehash rehearse reheat reimage reimburse reimplement reindex
    reinforce reinitialise reinitialize reinstall reinstate reinterpret reissue reject rejoice rejoin
    rejuvenate relabel relate relaunch relax relay relearn relent relieve relink relinquish relish relist
    relive reload relocate relog rely remain remake remap remember remerge remind remit remodel remount remove
    rename render renegotiate renew renounce renovate renumber reopen reorder reorganise reorganize reorient
    repackage repaint repay repel repent rephrase repin replace replicate repopulate reposition repress
    reprimand reprint repro reproach reprocess reproduce republish repurpose reread reroute rerun resample
    resave rescan reschedule reseed resemble resend resent reserve reside resign resist resize resolve respect
    respond restage restart restate restore restrain restrict restructure restyle resubmit resubscribe resync
    retag retain retaliate retarget retell retest rethink retract retrain retransmit retrieve retrigger
    retrofit retune retweet retype reunite reupload revalidate revamp reveal revel revere reverify revise
    revisit revitalise revitalize revive revoke revolutionise revolutionize rewatch rewind rewire reword
    rework rewrite rezip ridicule right-click rinse roam role-play roleplay romp rotate rouse rummage sabotage
    salute salvage sandbox sanitise sanitize satisfy saturate savor savour say scatter scold scoop scorch
    scorn scour scowl scramble scribble scrub scrutinise scrutinize sculpt secede seduce seek seize select
    self-host sell send serialise serialize serve settle sever sew shampoo shard sharpen shatter shave shed
    shorten shove shovel showcase shred shriek shrink shrug shun shut sideload sift sigh simmer simplify
    simulate sing sit skim skip slam slay sling slit smear smoke-test smother smuggle snatch sneak sneer sniff
    snooze snore soak soar sob socialise socialize soft-delete soften solicit solidify solve soothe sow spank
    speak specialise specialize specify spell spell-check spend spill spoil sponsor spot-check sprawl sprinkle
    sprint spur spurn spy squash squat squint squirt stab stabilise stabilize stagger standardise standardize
    starve stay steal steer stifle stimulate stir stomp straighten strangle strap strategise strategize
    strengthen strive stroke stroll strum strut stumble stun subdue sublet submit subscribe subsidise
    subsidize substantiate substitute subtract succumb suck sue suffer suggest sulk summarise summarize summon
    sunbathe supervise supplant supplement suppose suppress surmise surpass surrender suspend sustain swallow
    sway swear sweeten swerve swirl swivel symbolise symbolize sympathise sympathize synchronise synchronize
    synthesise synthesize tabulate tackle take tally tame tangle tarnish taunt teach tear tease tell temper
    terminate thaw thicken think threaten thrive throw thrust thump thwart tickle tidy tighten tinker tokenise
    tokenize tolerate topple torment torture trample transact transcend transcribe transform translate
    transmit transmute transpile transplant transpose traverse trek tremble trespass triage trim trot trudge
    truncate tuck tug tumble turn twirl type-check typecheck typeset unblock unbutton uncap uncheck unclog
    uncomment uncompress uncover undergo underline undermine understand undertake undervalue undo undock
    undress unearth unescape unfasten unfold unfollow unfreeze unify uninstall unite unleash unlink unload
    unlock unmask unmount unmute unpack unpin unplug unquote unravel unregister unroll unscrew unselect unsend
    unset unshare unstage unsubscribe untangle untar untie untrack unveil unwind unwrap unzip uphold uproot
    upset upvote usher usurp utilise utilize vacate vaccinate validate vanish vanquish vary vendor verify
    vibrate vilify violate virtualise virtualize visualise visualize vouch wade wallow wander warmup warn
    weaken wear weave webpack wed weep weigh whine whirl whisk whisper whitelist whitewash whittle widen wield
    wiggle wince wink withdraw withhold withstand wobble woo worsen worship wreck wrestle wriggle wring write
    yank yawn yell zap zero-fill
""")

MIXED = _words("""
    abort answer archive back balance beat bid bite blast bleed blot bluff bow bowl boycott breach bribe
    bruise buckle build bully bump burn burst call calm care catch caution change chant charge chase check
    cheer chill clean clear close commit complete compress contact copy correct count cover cross cross-check
    cut dash debate debug delay descend desert dial dig dip discharge discipline distance dock document dot
    download drain dream drift drink drip drive drop dry duck ease edit empty end escape exit export face fade
    feed feel ferment fidget figure finish fix float flush fly fold force forecast format forward free freeze
    fry gamble gesture glare glide gossip grant guess hatch haunt head heap help hit honk import jab jog join
    jolt jump kick kill knock lash leak-check lift limit link list load lock log look lower mail mark match
    mention merge mind mix monitor mount move note notice offer open own pack park paste pause peep ping pivot
    plug plunge poach point polish post practice press prick print pronounce publish puff pull push question
    quote raise record redirect refresh refuse repair repeat replay reply report request require reset rest
    retire retry return reuse revert review rid ride rip ripen roar roll rub run save scan schedule scrape
    scroll sear search season secure see separate set shake share shift shine ship shoot shop show shuffle
    sign slant sleep slow smack smell smile snag sneeze sort spare spin splice split spread squeeze stand star
    stare start step stick stop store stray strip swap swim switch sync talk tap taste tie toggle touch trace
    track trash treat trickle trust try tune tweak update upgrade upload urge use utter view visit voice vote
    wait wake walk wash watch whip wipe wrap zoom
""")

NOUNS = _words("""
    accent access address advance age aid aim air alarm alert alias ally anchor appeal approach approximate
    arm arrest arrow aspect assault attack attempt audit author ban bar base battle bear bet bill block blog
    blow board bond book bookmark boot bottle bounce box branch break bridge brief broadcast brush bucket
    budget buffer bug bundle bus butter button cache cage camp cap capture cast cat cd cement center centre
    chain chair challenge chart chat chip chmod chown circle claim class clip clone cloud coach coat code
    collapse color colour command comment commission compound compromise concern conflict console contest
    contract contrast control cook cool corner correlate cost counter cp crack craft crawl cream credit crop
    cruise cue cure curse cushion cycle damage dance dart date deal decrease default demand deposit design
    detail digest direct discount dispatch display dispute dive divert doodle double doubt draft dress drill
    drum dump duplicate dust echo estimate exchange exercise exhaust experiment exploit fan farm fashion fast
    favor favour fax fear fiddle fight file film filter fine fire fish fit flag flash flex flood flow focus
    fork form fragment frame frost frown fuel function fund fuse gain garden gauge gaze gear glance glow glue
    grade graduate grill grip group guarantee guard guide hack hammer hand handle harm harvest hash heat
    highlight hint honor honour hook host house hunt ice increase index influence input instance interface
    interrupt invite invoice iron issue jam judge kayak key kid kiss label land laugh launch layer lead leap
    lecture level leverage lie light line lint live lobby lodge loop lounge machine manifest map march market
    mask massage master mate matter mean measure mentor message milk mine mirror mkdir mock model mop mouth mv
    nail name need nest network nuke number nurse object oil order outline output overlap package pad page
    paint pan panic paper paragraph parallel part partition pass pat patch path patrol pattern pawn pedal peer
    pencil permit pet phone photograph picture piece pile pilot pin pinch pipe place plan plant plaster plate
    play pledge plot plow pocket poll position pot pound powder power prefix present preview price prime probe
    process produce profile profit program project promise prompt prop protest prototype pulse pump punch
    purchase puzzle query queue quiz race ram rank ransom rate reason reel reference regard regret release
    remark remedy rent rescue research resort resource respite result resume retreat reverse reward rig ring
    rise rm roast rock root rope rot round route row rsync rule rush sack saddle sail salt sample sand saw
    scale scope score scout scp scratch screen seal seat seed sense sequence service shadow shape shell
    shelter shield shock shower signal silence sink site size skate sketch ski skin slap slice slide slip slot
    smash smoke snack snap snapshot sound source space spark speed spice spike spoon spot spray sprout ssh
    stack staff stage stalk stall stamp staple stash state station steam steep sting stitch stock storm stow
    strain strand stream stress stretch strike structure struggle study style subject sudo suffix suit sum
    supply support surf surface surge surprise survey suspect swarm sweat sweep swing table tag tailor tar
    target task tax telephone template tempt test text thank thread tick tilt time tip title toast tone tool
    toss total tour tow tower trade train transfer transit transport trap travel trick trigger triple trumpet
    tube twist type vacuum value vault veil vent venture version veto void volume volunteer vow wager warm
    warrant waste water wave weather weed weight welcome weld wget whistle wind wire witness wonder word work
    worry yield zip zone
""")

# Two words which are an order, whatever follows.
PHRASES = _pairs("""
    make sure, make certain, feel free, take care, guess what, see below, see above, see attached, see also, see you,
    see what, see how, see why, see whether, see if, see where, keep going, stay away, stay tuned, watch out, look out
""")

# Two words which are an order unless a finite verb follows: "go to", but "Go to definition fails".
PAIRS = _pairs("""
    aim for, aim at, go ahead, go and, go around, go away, go back, go check, go down, go find, go for, go get, go here,
    go home, go in, go into, go next, go on, go onto, go out, go over, go see, go somewhere, go straight, go there,
    go through, go to, go up, go with, have a, have an, have at, have faith, have fun, have her, have him, have it,
    have patience, have someone, have the, have them, have your, cd into, cd to, cook with, deal with, focus on, log in,
    log into, play with, point to, pose as, reason about, refer to, rule out, scope to, search for, search in,
    service the, sort by, source from, time out, volunteer for, work around, work in, work on, work with, worry about
""")

# Two words which open no order.
IDLE = _pairs("look forward, let alone, set aside, come on")

# Openers after which "of" leads to an object; after any other it makes the opener a noun.
TAKE_OF = _words("approve beware conceive dispose dream hear know learn rid speak take think")

VERB_NOUNS = VERBS | MIXED | NOUNS

# These take a clause ("Ensure CI passes"), so a finite verb later in the sentence says nothing about the opener.
CLAUSAL = _words("""
    assume believe confirm consider decide determine ensure expect explain feel guess hear imagine inform know note
    notice pretend promise prove realise realize recall recognise recognize remember remind say suppose swear tell
    think understand verify
""")

# After these the bare verb is no finite one: "Make the tests fail".
CAUSATIVES = _words("have help let make see watch")

DITRANSITIVES = _words("""
    allow ask assign bring buy deny get give grant hand leave lend make offer pay promise save send show teach tell
""")

DETERMINERS = _words("""
    a all an another any both each either enough every few fewer her his its less many more most my neither no other our
    several some such that the their these this those whatever whichever your
""")

# Those which only an object has: "Test the build", but "Issue that came back".
FIRM = _words("yourself yourselves one a all an any both each every her him his it its me my our the their them these this those us your")

OBJECTS = _words("""
    anybody anyone anything everybody everyone everything him himself it itself me nobody nothing one somebody someone
    something them themselves us yourself yourselves
""")

SUBJECTS = _words("he he'd he'll he's i i'd i'll i'm i've it it'll it's she she'd she'll she's that'll that's there there's they they'd they'll they're they've we we'd we'll we're we've who you you'd you'll you're you've")

# A word which starts a clause of its own: what follows says nothing about the opener.
CLAUSE_STARTS = _words("""
    after although as because before but how if since so than that though till unless until what whatever when whenever
    where whether which while who whom whose why
""")

JOINERS = _words("and or & nor")

# Before a finite verb stands its subject, and none of these.
NO_SUBJECTS = JOINERS | _words("a an at for from its my no of our the their to very with your")

PARTICLES = _words("ahead along apart around aside away back down into off onto out over through together up")

PREPOSITIONS = _words("""
    about above across against among at before behind below between beyond by during for from in inside into like near of
    on onto outside over per through to toward towards under upon via with within without
""")

AUXILIARIES = _words("""
    are aren't can can't cannot cant could couldn't did didn't didnt does doesn't doesnt had hadn't has hasn't haven't is
    isn't isnt may might must mustn't shall should shouldn't was wasn't wasnt were weren't will won't wont would wouldn't
""")

# Forms of what tools, files and people do which are hardly ever a plural noun.
FINITE = _words("""
    appears assumes became becomes began begins bought breaks broke brings brought came caught causes chose comes
    complains crashes depends differs drew ends exists exits expects fails falls fell felt finishes forgot freezes
    froze gave gets gives goes got grew hangs happens held hid hides hung keeps kept knew knows leads leaks leaves led
    lets lives looks loses lost made makes means meant met needs occurs panics produces puts ran reads rejects requires
    resolves returns runs said sank says seems sends sent shows sits skips slept spawns spent stalls stands starts
    stays stood stops strips stuck succeeds swallows swept takes tells thinks threw throws told took tore treats tries
    turns wants warns went woke won works writes wrote overwrote outlives eats ate
""")

# Past forms which may also describe a noun ("Use built images"): finite where an "-ed" form would be.
PASTS = _words("built cut found hit left put set shut split spread")

# Bare forms which are finite after a plural: "Test files hang".
PLURAL_FINITE = _words("""
    appear behave break crash depend differ disappear do don't exist expire fail hang have inherit lack leak lose need
    occur remain require succeed
""")

# Words before the opener which change nothing.
LEAD_INS = _words("""
    absolutely accordingly additionally afterward afterwards again ah alternatively also and anyway anyways attention
    besides best better btw but carefully certainly consequently dear definitely even everybody everyone finally first
    firstly folks furthermore fyi gently guys hello hence hey hi honestly however ideally immediately instantly instead
    just kindly last lastly later lol maybe meanwhile moreover nevertheless next no now oh ok okay once only or
    otherwise p.s perhaps plus preferably ps rather right second secondly seriously simply slowly so sometimes sorry
    still subsequently then therefore third thirdly thus today tomorrow tonight well wow yeah yep yes
""")

LEAD_PAIRS = _pairs("""
    above all, after all, after that, as always, as usual, at first, at least, at once, at worst, by all, for example,
    for instance, for now, from there, if necessary, if needed, if not, if possible, if so, in addition, in fact,
    in general, in short, no matter, of course, on top, to begin, to start, when possible
""")

# A label with one of these quotes what a program said.
TOLD = _words("""
    error errors exception failed failure fatal hint log message messages output panic printed reply response result
    said says stderr stdout told traceback warning
""")

# These end in "-ly" and are no adverbs that stand before an order.
NO_ADVERBS = _words("""
    anomaly assembly belly bully daily early family friendly hourly italy july kelly likely lovely monopoly monthly
    nightly poly sally silly ugly unlikely weekly yearly
""")

URGES = _words("always do kindly never please pls plz")
PLEASE = _words("please pls plz")

# Before a colon: "Fix: delete it".
LABELS = _words("""
    action actions admin administrator advice agent ai alert announcement answer assistant attention caution caveat
    command conclusion correction critical details directive fix fyi goal hint human important info information
    instruction instructions lesson lessons moral n.b nb note notes notice objective p.s policy practice problem
    procedure prompt ps recommendation remedy reminder remember request requirement response rule rules solution step
    suggestion summary system takeaway task tasks tip tips todo update urgent user warning workaround
""")

# What may stand before an order, up to a comma: "If X, do Y", "To fix it, run Z".
PREFACES = _words("""
    above after although as assuming at because before besides between by concerning despite during even every
    following for from given having if in instead next on once otherwise per provided rather regarding should since
    short though till to under unless until upon when whenever where wherever whether while whilst with without
""")

# After a comma or a dash in mid-sentence these announce an order.
ASIDES = _words("always don't dont instead just kindly never please pls plz so")

CONDITIONS = _words("after before if once unless until when whenever while")

# "You must", "the assistant should"; a pair is read with the word after it.
DUTIES = _words("must mustn't ought shall shalt should shouldn't")
DUTY_PAIRS = _pairs("""
    are going, are no, are now, are required, are to, can now, had better, has to, have to, is to, must now, need to,
    needs to, will act, will answer, will now, will only, will pretend, will reply, will respond, will simulate
""")
AGENTS = _words("agent agents ai assistant assistants chatbot chatgpt claude codex copilot gemini gpt llm llms")
WISHES = _words("ask command expect instruct like need order require urge want")

# After "don't" these have lost their "I": "Don't know why".
DROPPED = _words("believe care have know like mind need recommend see think understand want wish")

ABBREVIATIONS = _words("approx cf dr e.g eg esp etc fig i.e ie incl mr mrs ms resp st vs")
