"""The words of the imperative guard: plain English, in lower case.

- A verb stands in exactly one of three sets, by what its bare form is at the head of an English sentence:
  ``VERBS`` (hardly ever anything but an order), ``MIXED`` (an order, unless what follows makes it a name: "Make
  fails"), ``NOUNS`` (a noun or an adjective, unless what follows can only be an object: "Test the build").
- Words which name a fault (crash, hang, leak, timeout) and verbs whose subject "I" is often dropped (hope, love,
  need, want) are in none of them: they open observations.
- The sets are data. What they mean for a sentence is said in `remem.protocol.guard` and `guard_clause`.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[str]:
    return frozenset(" ".join(pair.split()) for pair in text.split(","))


VERBS = _words("""
    abandon abstain accelerate accept accommodate accompany accomplish accumulate achieve acknowledge acquire act
    activate adapt add adhere adjust administer admit adopt advertise advise aggregate agree align allocate allow
    allowlist alter amend amplify amuse analyse analyze annotate announce anticipate apologise apologize append apply
    appoint approve argue arrange ascertain ask aspire assemble assert assess assign assist assume assure attach attain
    attend attribute augment authenticate authorise authorize auto-format autocomplete autoformat autogenerate automate
    avoid await awaken backport backtrack bake bargain bathe beg begin behave believe bend betray beware bind bisect
    blacklist blame bleach blend bless blink blocklist boast boil boost bootstrap borrow bother brace brag brainstorm
    brew brighten bring broaden browse bury buy bypass calculate calibrate cancel canonicalise canonicalize capitalise
    capitalize carry carve cascade cater cease celebrate centralise centralize certify cheat cherry-pick chew choose
    chop circulate circumvent cite clamp clap clarify classify cleanse click climb cling coerce collaborate collate
    collect combine come commence commend communicate compare compensate complain comply compose compute conceal
    concentrate conclude conduct configure confine confirm conform confront congratulate connect conserve consider
    consolidate constrain construct consult consume containerise containerize contemplate continue contribute convert
    convey convince cooperate coordinate copy-paste correspond counsel cram create creep cross-reference cross-validate
    crush cuddle cultivate customise customize cut-and-paste daemonise daemonize dampen dare deactivate deallocate
    decide decipher declare declutter decode decommission decompile decompress decorate decouple decrypt dedicate
    deduce deduct dedupe deduplicate deepen defend defer define deflate deflect defragment defrost defy delegate delete
    deliver demolish demonstrate deny depart deprecate deprive dereference derive describe deselect deserialise
    deserialize designate desist destroy detach detect determine develop devise devote diagnose differentiate dilute
    dine disable disagree disappear disassemble discard discern disclose disconnect discontinue discourage discover
    discriminate discuss disentangle disguise dismantle dismiss disobey dispose disprove disregard disrupt dissolve
    distinguish distract distribute disturb diversify divide dockerise dockerize dodge double-check double-click
    downgrade downplay downvote drag drape draw drown earn eat educate elaborate elect elevate elicit eliminate embark
    embed embellish embrace emit emphasise emphasize employ empower emulate enable encapsulate enclose encode encompass
    encounter encourage encrypt endeavor endeavour endorse endure energise energize enforce engage enhance enjoy
    enlarge enlist enqueue enrich enrol enroll ensure enter entertain entrust enumerate equip eradicate erase escalate
    establish evacuate evade evaluate evict evolve examine exclude excuse execute exempt exfiltrate expand expect
    expedite expel explain explore expose extend exterminate extinguish extract facilitate fact-check factor
    familiarise familiarize fasten fill finalise finalize find fine-tune flatten flick flip follow forget forgive
    formulate foster fulfil fulfill garnish gather generate get giggle give govern grab grasp grate greet grep grin
    grind groom grow halt harass hard-code hardcode harden harness haul heal hear heed hesitate hide hire hoard hold
    hop hotfix hover hug hum hurry hydrate identify ignite ignore illustrate imagine immerse impede impersonate
    implement implore imply impose impress improve improvise include incorporate indicate infect infer infiltrate
    inflate inform inhibit initialise initialize initiate inject inline innovate inquire insert insist inspect inspire
    instantiate instruct insulate insure integrate intensify interact intercept interfere interlock interpolate
    interpret interrogate intervene interview introduce invade invalidate invent invert invest investigate invoke
    involve isolate itemise itemize iterate jot juggle jump-start justify keep kidnap knead lay learn leave left-click
    lend lengthen lessen lighten listen loan locate loosen lubricate magnify maintain manage manipulate marinate marry
    marvel maximise maximize mediate meditate meet melt memoize memorise memorize mend migrate minify minimise minimize
    miss mitigate mobilise mobilize moderate modernise modernize modify monkey-patch monkeypatch mow multiply munch
    murder muster mute nag nap navigate negate neglect negotiate nod normalise normalize notarise notarize notify nudge
    nurture obey obfuscate observe obstruct obtain occupy omit operate oppose opt optimise optimize orchestrate
    organise organize orient originate outsource overallocate overcharge overcome overdo overhaul overload overlook
    overreact override oversee overstate overtake overturn overwrite owe parallelise parallelize paraphrase pardon
    participate pay peek peel penalise penalize perceive perform persevere persist personalise personalize persuade
    pick pinpoint plead poke ponder populate postpone pour practise praise pray precompile precompute preempt prefer
    prefetch preheat preinstall preload prepare prepend preprocess prescribe preserve pretend prevent prioritise
    prioritize proceed procure prod prohibit prolong promote proof-read proofread propagate propose prosecute protect
    prove provide prune punish purge put quantify quantise quantize quarantine quit rally re-check re-enable re-export
    re-import re-install re-open re-read re-run reach reactivate read readjust realise realize reallocate reapply
    rearrange reassemble reassert reassess reassign reassure rebind reboot rebuild recalculate recalibrate recall
    recharge recheck recite reclaim recognise recognize recompile recompress recompute reconcile reconfigure reconnect
    reconsider reconstruct recover recreate recruit rectify recycle redact redeem redefine redeploy rederive redesign
    rediscover redo redownload reduce reenact reencode reencrypt reevaluate refactor refer refetch refill refine
    reflect reformat reformulate refrain refund refurbish refute regain register regrade regroup regulate rehearse
    reheat reimage reimburse reimplement reindex reinforce reinitialise reinitialize reinstall reinstate reinterpret
    reissue reject rejoin relabel relate relaunch relax relay relearn relieve relink relist relive reload relocate
    relog rely remain remake remap remember remerge remind remit remodel remount remove rename render renegotiate renew
    renumber reopen reorder reorganise reorganize reorient repackage repaint repay rephrase repin replace replicate
    repopulate reposition reprint reprocess reproduce republish repurpose reread reroute rerun resample resave rescan
    reschedule reseed resend reserve resist resize resolve respect respond restage restart restate restore restrain
    restrict restructure restyle resubmit resubscribe resync retag retain retarget retell retest rethink retract
    retrain retransmit retrieve retrigger retrofit retune retweet retype reupload revalidate revamp reveal reverify
    revise revisit revive revoke rewatch rewind rewire reword rework rewrite rezip right-click rinse role-play roleplay
    rotate sabotage salvage sanitise sanitize say scatter scoop scramble scrub scrutinise scrutinize seek seize select
    self-host sell send serialise serialize serve settle shampoo sharpen shave shed shorten shovel showcase shred
    shrink shrug shut sideload sift sigh simmer simplify simulate sing sit skim skip slam sling slit smoke-test smuggle
    sniff snooze snore snuggle soak soar socialise socialize soft-delete soften solidify solve speak specify spell
    spell-check spend spill sponsor spot-check sprinkle sprint spur spy squash squat stab stabilise stabilize
    standardise standardize starve stay steal steer stimulate stir stomp straighten strap strengthen stroke stumble
    submit subscribe substantiate substitute subtract suffer suggest summarise summarize summon supervise supplement
    suppose suppress surrender suspend sustain swallow sway swear sweeten synchronise synchronize synthesise synthesize
    tabulate tackle take tally tame tangle teach tear tease tell temper terminate thicken think threaten throw thump
    tickle tidy tighten tinker tokenise tokenize transcribe transform translate transmit transpile transplant transpose
    traverse triage trim truncate tuck tug tumble turn type-check typecheck typeset unblock unbutton uncap uncheck
    unclog uncomment uncompress uncover underline undermine understand undertake undo undock unescape unfasten unfold
    unfollow unfreeze unify uninstall unite unlink unload unlock unmask unmount unmute unpack unpin unplug unquote
    unravel unregister unroll unscrew unselect unsend unset unshare unstage unsubscribe untangle untar untie untrack
    unveil unwind unwrap unzip uphold upvote utilise utilize validate vary verify vibrate violate virtualise virtualize
    visualise visualize vouch warn weaken wear weigh whisk whisper whitelist whitewash widen wiggle withdraw withhold
    wreck wrestle write yell zap zero-fill
""")

MIXED = _words("""
    abort answer archive attack balance ban beat bet bid bite blast bleed blow bluff book bounce bow bowl boycott
    breach brush buckle build bump burn burst call calm care cast catch caution change charge chase chat check checkout
    cheer chill clean clear clone close coach command comment commit compile complete compress contact cook cool copy
    correct count cover cream crop cross cross-check cruise cure cut dance dart dash deal debate debug decrease delay
    deploy dial dig dip discharge discipline dispatch display distance dive dock document double download draft drain
    dream dress drift drink drip drive drop dry duck dump dust e-mail ease edit email empty end escape estimate
    exchange exercise exit export face fade fan fashion favor favour fax fear feed feel fetch fight figure finish fire
    fix flag float flush fly fold force forecast format forward frame free freeze fry fuel fund gamble gauge glance
    glide glow glue google gossip grade grant grill guarantee guide hammer harvest head heap help highlight hit honor
    honour hunt import increase install invite iron jab jog join judge jump kick kid kill kiss knock laugh launch leap
    let lift limit link list load lobby lock log look lower mail make mark massage match measure mention merge milk
    mind mix monitor mop mount move nail note notice nurse offer oil open order outline own pack paint park parse pass
    paste pat patrol pause pet phone photograph picture pile pin pinch ping pivot place plan plant play pledge plot
    plug plunge pocket point polish poll post pound powder practice press print produce promise pronounce publish puff
    pull purchase push puzzle question quiz quote raise rank reason rebase record redirect refresh refuse regret remark
    rent repair repeat replay reply report request require rescue research reset rest retire retreat retry return reuse
    revert review reward rid ride ring rip ripen rise roar roast roll rub run rush sail salt save scan schedule scout
    scrape scratch scroll seal search season secure see sense separate set shake share shelter shift shine ship shoot
    shop show shuffle sign sink skate sketch ski slap sleep slice slide slip slow smack smash smell smile smoke snap
    sort sound spare spark spin splice split spot spray spread sprout squeeze stamp stand staple star stare start steam
    step stick stop store storm strain stress stretch strike strip struggle study surf surprise suspect swap sweat
    sweep swim swing switch sync tailor talk tap taste tempt tick tie tilt toast toggle toss touch tour tow trace track
    trade transport trash travel treat trick triple trumpet trust try tune tweak twist update upgrade upload urge use
    vacuum venture veto view visit voice volunteer vote vow wait wake walk warm wash waste watch water weather weed
    welcome whip whistle wind wipe witness wonder worry wrap zip zoom
""")

NOUNS = _words("""
    accent access address advance age aid aim air alarm alert alias ally anchor appeal approach approximate arm arrest
    arrow aspect assault attempt audit author back backup bar base battle bear block blog board bond bookmark boot
    bottle box branch break bridge brief broadcast bucket budget buffer bug bundle bus butter button cache cage camp
    cap capture cat cd cement center centre chain chair challenge chart chip chmod chown circle claim class clip cloud
    coat code collapse color colour commission compound compromise concern conflict console contest contract contrast
    control corner correlate cost counter cp crack craft crawl credit cue curl curse cushion cycle damage date default
    demand deposit design detail digest direct discount dispute divert doodle doubt drill drum duplicate echo exhaust
    experiment exploit farm fast fiddle file film filter fine fish fit flash flex flood flow focus fork form fragment
    frost frown function fuse gain garden gaze gear go graduate grip group guard guess hack hand handle harm hash have
    heat hint hook host house ice index influence input instance interface interrupt invoice issue jam journal kayak
    key label land layer lead lecture level leverage lie light line lint live lodge loop lounge machine manifest map
    march market mask master mate matter mean mentor message mine mirror mkdir mock model mouth mv name namespace need
    nest network nuke number object output overlap package pad page pan panic paper paragraph parallel part partition
    patch path pattern pedal peer pencil permit piece pilot pipe plaster plate plow position pot power prefix present
    preview price prime probe process profile profit program project prompt prop protest prototype pulse pump punch
    query queue race ram ransom rate reel reference regard release remedy resort resource respite result resume reverse
    rig rm rob root rope rot round route row rsync rule sack saddle sample sand sandbox saw scale scope score scp
    screen seat seed sequence service shadow shape shard shell shield shock shower signal silence site size skin slot
    snack snapshot source space speed spice spike spoon ssh stack staff stage stalk stall stash state station steep
    sting stitch stock stow strand stream structure style subject sudo sue suffix suit sum supply support surface surge
    survey swarm table tag tar target task tax telephone template test text thread time tip title tone tool total tower
    train transfer transit trap trigger tube type value vault veil vendor vent version void volume wager warrant wave
    weight weld wget wire word work yield zone
""")

VERB_NOUNS = VERBS | MIXED | NOUNS

# Shell commands, which are orders with a flag or a path: "rm -rf /".
COMMANDS = _words("cat chmod chown cp curl kill mkdir mv rm rsync scp ssh sudo tar wget")

# Two words which are an order, whatever follows.
PHRASES = _pairs("""
    feel free, guess what, keep going, let me, let us, look out, make certain, make sure, see above, see also,
    see attached, see below, see how, see if, see what, see where, see whether, see why, see you, stay away,
    stay tuned, take care, watch out
""")

# Two words which are an order unless a finite verb follows: "go to", but "Go to definition fails".
PAIRS = _pairs("""
    aim at, aim for, cd into, cd to, cook with, deal with, focus on, go ahead, go and, go around, go away, go back,
    go check, go down, go find, go for, go get, go here, go home, go in, go into, go next, go on, go onto, go out,
    go over, go see, go somewhere, go straight, go there, go through, go to, go up, go with, have a, have an,
    have at, have faith, have fun, have her, have him, have it, have patience, have someone, have the, have them,
    have your, log in, log into, play with, point at, point to, pose as, rule out, search for, search in, sort by,
    volunteer for, work around, work in, work on, work with, worry about
""")

# Two words which open no order.
IDLE = _pairs("come on, let alone, look forward, set aside, use after")

# Right after a noun these name a fault: "Merge conflict in the lock file".
FAULTS = _words("""
    bug collision condition conflict contention corruption crash cycle deadlock delay drift error exception failure
    fault issue lag leak limit loop loss mismatch miss outage overflow panic problem race regression timeout trouble
    violation warning
""")

# Openers after which "of" leads to an object; after any other it makes the opener a noun.
TAKE_OF = _words("approve beware conceive dispose dream hear know learn rid speak take think")

# These take a clause ("Ensure CI passes"), so a finite verb later in the sentence says nothing about the opener.
CLAUSAL = _words("""
    assume believe confirm consider decide determine ensure expect explain feel guess hear imagine inform know pretend
    promise prove realise realize recall recognise recognize remember remind say suppose swear tell think understand
    verify
""")

# The object of these has a verb or an adjective of its own: "Make tests fail", "Keep files closed".
CAUSATIVES = _words("find have help keep leave let make see watch")

DITRANSITIVES = _words("""
    allow ask assign bring buy deny get give grant hand leave lend make offer pay promise save send show teach tell
""")

DETERMINERS = _words("""
    a all an another any both each either enough every few fewer her his its less many more most my neither no other
    our several some such that the their these this those whatever whichever your
""")

# Those which only an object has: "Test the build", but "Issue that came back".
FIRM = _words("""
    a all an any both each every her him his it its me my one our the their them these this those us your yourself
    yourselves
""")

# After a noun that can be a verb these make it one: "trigger the hook".
ARTICLES = _words("a an its the their")

# Those which may stand after a plural: "a few times a day".
MEASURES = _words("a all each")

OBJECTS = _words("""
    anybody anyone anything everybody everyone everything him himself it itself me nobody nothing one somebody someone
    something them themselves us yourself yourselves
""")

SUBJECTS = _words("""
    he he'd he'll he's i i'd i'll i'm i've it it'll it's she she'd she'll she's that'll that's there there's they
    they'd they'll they're they've we we'd we'll we're we've who you you'd you'll you're you've
""")

# A word which starts a clause of its own: what follows says nothing about the opener.
CLAUSE_STARTS = _words("""
    after although as because before but how if since so than that then though till unless until what whatever when
    whenever where whether which while who whom whose why
""")

JOINERS = _words("& and nor or")

PARTICLES = _words("ahead along apart around aside away back down into off onto out over through together up")

PREPOSITIONS = _words("""
    about above across against among at before behind below between beyond by during for from in inside into like near
    of on onto outside over per through to toward towards under upon via with within without
""")

AUXILIARIES = _words("""
    are aren't can can't cannot cant could couldn't did didn't didnt does doesn't doesnt had hadn't has hasn't haven't
    is isn't isnt may might must mustn't shall should shouldn't was wasn't wasnt were weren't will won't wont would
    wouldn't
""")

# Forms of what tools, files and people do which are hardly ever a plural noun.
FINITE = _words("""
    aborts appears ate became becomes began begins bought breaks brings broke brought came caught chose comes crashes
    depends differs draws drew eats ends exits fails falls fell felt finishes forgot freezes froze gave gets gives goes
    got grew handles hangs happens held hid hides hung kept knew lacks leads leaks led lies looks lost matters means
    meant met needs overwrote panics puts ran reads rejects requires returns rose said sank says seems sends sent shows
    sits skips slept spawns spent splits stalls stands starts stays stood stops strips stuck swept takes thinks threw
    throws told took tore treats tries turns understood wants went woke won works wrote
""")

# Past forms which may also describe a noun ("Use built images"): finite where an "-ed" form would be.
PASTS = _words("built cut found hit left put set shut split spread")

# After a noun these describe it: "tokens stored in a vault".
REDUCED = _words("""
    attached based called contained created defined described generated included installed listed located mentioned
    named needed provided related required stored tagged used
""")

# The same in the present and the past, so that "After the upgrade pip put the" is no order.
SAME_PASTS = _words("beat cost cut hit let put quit read set shut split spread")

# After a past form these show that it is a verb.
AFTER_VERBS = (
    PREPOSITIONS
    | PARTICLES
    | DETERMINERS
    | OBJECTS
    | CLAUSE_STARTS
    | JOINERS
    | _words("again already anyway early first here instead last late not once only there today too twice")
)

# Bare verbs which are finite after a plural, however far behind: "Hooks of the tool fail".
SURELY_FINITE = _words("""
    appear arrive behave confuse consist contain corrupt depend differ disappear exceed exhaust exist expire fail
    happen have hide inherit lack linger lose occur remain seem succeed surprise survive tend
""")

# Those right after it ("Test files hang"); but some may be what it is made or given ("Keep files open").
_MORE_FINITE = _words("break crash die do don't fall hang leak mask need outlive overlap panic stall time trigger trip")
_GIVEN = _words("""
    back calm clean clear close complete correct cross dry empty free head help lower mail mind open own rest secure
    separate slow spare
""")
PLURAL_FINITE = (VERBS | MIXED | SURELY_FINITE | _MORE_FINITE) - _GIVEN
BARE_VERBS = VERB_NOUNS | _MORE_FINITE
NO_PLURALS = _words("always as does has his its lots perhaps plus sometimes this times us was yes")

# Before a finite verb stands its subject, and none of these.
NO_SUBJECTS = JOINERS | _words("a an at for from its my no of our the their to very with your")

# Before an order stands the end of a clause, and none of these.
NO_CLAUSE_ENDS = (
    SUBJECTS - {"it"}
    | AUXILIARIES
    | JOINERS
    | PREPOSITIONS
    | DETERMINERS
    | CLAUSE_STARTS
    | _words(", also come do don't go help just let make not please")
)

# Words before the opener which change nothing.
LEAD_INS = _words("""
    absolutely accordingly additionally afterward afterwards again ah also alternatively and anyway anyways attention
    besides best better btw but carefully certainly consequently dear definitely even everybody everyone finally first
    firstly folks furthermore fyi gently guys hello hence hey hi honestly however ideally immediately instantly instead
    just kindly last lastly later lol maybe meanwhile moreover nevertheless next no now oh ok okay once only or
    otherwise p.s perhaps plus preferably ps rather right second secondly seriously simply slowly so sometimes sorry
    still subsequently thanks then therefore third thirdly thus today tomorrow tonight well wow yeah yep yes
""")
LEAD_PAIRS = _pairs("""
    above all, after all, after that, as always, as usual, at first, at least, at once, at worst, by all,
    for example, for instance, for now, from there, good luck, if necessary, if needed, if not, if possible, if so,
    in addition, in fact, in general, in short, of course, on top, thank you, to begin, to start, when possible
""")

# These end in "-ly" and are no adverbs that stand before an order.
NO_ADVERBS = _words("""
    anomaly assembly belly bully daily early family friendly hourly italy july kelly likely lovely monopoly monthly
    nightly poly sally silly ugly unlikely weekly yearly
""")

URGES = _words("always do kindly never please pls plz")
PLEASE = _words("please pls plz")
LETS = _words("let's lets")
AFTER_LETS = _words("all hope not")
DO_NOTS = _words("don't dont")

# After "don't" these have lost their "I": "Don't know why".
DROPPED = _words("believe care have know like mind need recommend see think understand want wish")

# Verbs which are also labels before a colon: "Note: the build fails".
LABELS = _words("""
    answer caution command edit fix hint note notice practice prompt remember request rule step task tip update
""")

# A label with one of these says what a program wrote.
TOLD = _words("""
    error errors exception fail failed failure fatal hint log message messages output panic printed reply response
    result said says stderr stdout told traceback warning
""")

# What may stand before an order, up to a comma: "If X, do Y", "To fix it, run Z".
PREFACES = _words("""
    above according after although as assuming at based because before besides between by concerning depending despite
    due during even every following for from given having if in instead next on once otherwise per provided rather
    regarding short should since though throughout till to under unless unlike until upon whatever when whenever where
    wherever whether while whilst with within without
""")

# After a comma or a dash in mid-sentence these announce an order.
ASIDES = _words("always don't dont instead just kindly never please pls plz so")

# "You must", "the assistant should"; a pair is read with the word after it.
DUTIES = _words("must mustn't ought shall shalt should shouldn't")
DUTY_PAIRS = _pairs("""
    are no, are now, are required, are to, can now, had better, has to, have to, is to, must now, need to, needs to,
    will now, will only
""")

# What an agent is told to be: "You are going to act", "you will respond".
BEFORE_ROLES = _words("always are be going is never now only to will")
ROLE_VERBS = _words("""
    act answer behave ignore imitate impersonate obey output play pretend reply respond roleplay simulate
""")
AGENTS = _words("agent agents ai assistant assistants chatbot chatgpt claude codex copilot gemini gpt llm llms")
BEFORE_AGENTS = _words("ai autonomous coding future")
BEFORE_MODALS = _words("also just now then")
SHORTENED = _words("you'll you're")
TASKS = _words("""
    answer answers code goal job mission name objective output purpose replies reply response responses role task
""")
TASK_VERBS = _words("is must shall should will")
WISHES = _pairs("""
    i ask, i command, i need, i order, i want, must ask, we ask, we need, we want, would ask, would like
""")

ABBREVIATIONS = _words("approx cf dr e.g eg esp etc fig i.e ie incl mr mrs ms resp st vs")
