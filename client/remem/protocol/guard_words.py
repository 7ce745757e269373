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


VERBS = _words("""
    abandon abide abolish abstain accelerate accept accommodate accompany accomplish accumulate achieve acknowledge
    acquire activate adapt add adhere adjust administer admit adopt advise aggregate agree align allocate allow alter
    amend amplify analyse analyze announce annotate anticipate apologise apologize append apply appoint approve
    arrange ascertain ask assemble assert assess assign assist assume assure attach attend authenticate authorise
    authorize automate avoid await backtrack backup bake batch-convert beg begin behave behold believe bend beware
    bind blacklist blame bless boil boost borrow bother breathe brew bring broaden browse bury buy bypass calculate
    calibrate cancel capitalise capitalize carry cease celebrate centralise centralize certify checkout cherry-pick
    chew choose circumvent cite clarify classify cleanse click climb cling coerce collaborate collate collect combine
    come communicate compare compensate compile complain comply compose compute conceal concentrate conclude conduct
    configure confine confirm conform confront congratulate connect consider consolidate construct consult consume
    continue contribute convert convey convince cooperate coordinate create criticise criticize cultivate customise
    customize deactivate deallocate decide declare decode decompress decorate decouple decrypt dedicate deduce deduct
    deduplicate defend defer define delegate delete deliver demonstrate deny deploy deprecate derive describe deselect
    deserialise deserialize designate desist destroy detach detect determine develop devise diagnose differentiate
    dilute disable disagree discard disclose disconnect discontinue discover discuss disguise dismantle dismiss
    disobey dispose disregard distinguish distribute diversify divide donate downgrade drag draw earn eat educate
    elaborate eliminate email embed embrace emit emphasise emphasize employ empower emulate enable encapsulate enclose
    encode encourage encrypt endeavor endeavour enforce engage enhance enjoy enlarge enlist enqueue enrich enrol
    enroll ensure enter entertain enumerate erase escalate establish evaluate evict examine exclude excuse execute
    exfiltrate expand expect expedite explain explore expose extend extract facilitate factor familiarise familiarize
    fasten fetch fill finalise finalize find flatten flip follow forbid forget forgive formulate foster fulfil fulfill
    gather generate get give go grab grasp greet grep grind grow halt harden harness hear heed hesitate hide hire hold
    hover hurry hydrate identify ignore illustrate imagine immerse impersonate implement impose impress improve
    improvise include incorporate indicate infer inflate inform inhibit initialise initialize initiate inject inquire
    insert insist inspect install instantiate instruct integrate intercept interpolate interpret intervene introduce
    invalidate invent invert invest investigate invoke involve isolate iterate jot justify keep kneel knit lay learn
    leave lend lengthen lessen let lighten listen locate loosen lubricate maintain make manage manipulate maximise
    maximize meditate meet memorise memorize memoize mend migrate minify minimise minimize mitigate modernise
    modernize modify moisten multiply mute navigate neglect negotiate normalise normalize notarise notarize notify
    nurture obey obfuscate obscure observe obtain occupy omit operate oppose optimise optimize opt organise organize
    outsource overcome overlook override overwrite parallelise parallelize parse participate pay peel penalise
    penalize perform persist personalise personalize persuade pick pinpoint pip-install ponder populate postpone pour
    practise praise pray preheat prepare prepend preserve pretend prevent prioritise prioritize proceed procure
    prohibit prolong promote proofread propagate propose protect prove provide prune punish purge pursue put quantify
    quit quickstart re-add re-check re-enable re-export re-import re-install re-open re-read re-run reach read
    readjust realise realize reapply rearrange reassess reassign reassure rebase reboot rebuild recalculate recalibrate
    recall recharge recheck recite reclaim recognise recognize recompile recompute reconcile reconfigure reconnect
    reconsider reconstruct recover recreate recruit recycle redact redeem redefine redeploy redesign rediscover redo
    reduce reevaluate refactor refer refill refine reflect reformat reformulate refrain regain regenerate register
    regulate reheat reimplement reindex reinforce reinitialise reinitialize reinstall reinstate reinterpret reissue
    reject rejoin relax relaunch reload relocate rely remain remake remember remind remount remove rename render renew
    renounce renumber reopen reorder reorganise reorganize repackage repaint repent rephrase replace replicate
    reposition reproduce republish reread rerun resample reschedule resend reserve resign resist resize resolve
    respect respond restart restate restore restrain restrict restructure resubmit retain rethink retrain retract
    retrieve retype reveal revise revisit revoke rewire rewind rewrite rinse roleplay role-play rotate sanitise
    sanitize satisfy savor savour say scrub seek select sell send serialise serialize serve settle sharpen shave
    shorten shrink shut simplify simulate sing sit skim skip snooze soak socialise socialize solicit solve speak
    specify spell spend stabilise stabilize standardise standardize stay steal steer stir strengthen strive submit
    subscribe substitute subtract summarise summarize supplement suppose suppress surrender suspend swallow swear
    synchronise synchronize synthesise synthesize take teach tear tell terminate think throw tidy tighten tolerate
    transcribe transform translate transmit transpose trim truncate turn type-check unblock uncheck uncomment
    uncompress undergo underline understand undertake undo undock unfold unfollow unfreeze unify uninstall uninterpret
    unite unload unlink unlock unmount unmute unpack unpin unplug unroll unscrew unselect unset unstage unsubscribe
    untar untie unwind unwrap unzip uphold utilise utilize validate vary verify visualise visualize vouch warn weaken
    wear weigh whisk widen withdraw withhold worship write yell
""")

MIXED = _words("""
    abort accent accuse advance advertise aim alert answer archive arm arrest assault attempt attack back bake balance
    ban beat bite blow bookmark boot bounce breed bring build burn calm call capture care cast catch chain change
    charge chase chat check cheer chill clean clear clip clone close collapse comment commit complete compress
    contact copy correct count cover crawl crop cross cross-check cure cut dance debug decrease delay descend dial dig
    dip dispatch dive document download drain dream drink drive drop dry dump duplicate ease edit empty end escape
    estimate exit experiment export face feed feel fight figure finish fire fix flag flash flex flush fly fold force
    format forward frame free freeze fry gaze glue grant guess head help hit host hunt import increase insulate jump
    join kick kill kiss knock label launch lead leap lie lift limit link lint list load lock look loop lower mail march
    mark mask match measure mention merge mind mirror mix monitor mount move nail nest note notice offer open ostracize
    outline own pack paint park partition paste patch pause permit phone pin ping pipe plug point polish poll post
    practice press preview print probe process profile pronounce publish pull pump push query question queue quote
    race raise rank rate rebuild record redirect refresh refuse release rent repair repeat replay reply report request
    require research reset rest retire retry return reuse reverse revert review reward rid ride ring rip rise roll rub
    run rush save scale scan schedule scratch scrape screen scroll seal search secure see separate set shake share
    shift ship shoot shop show shuffle sign silence slap sleep slice slide slow smash smell smile snap sort spare
    spin splice split spot spray spread squash squeeze stack stand star start state steam step stick stop store stow
    strip stretch strike study supply supplement surf survey swap sweep swim swing switch sync tag talk tap taste
    tailor thread tick tie tilt toggle touch tour trace track trade trash travel treat trigger trust try tune tweak
    twist update upgrade upload urge use vacuum view visit vote wait wake walk wash waste watch water wave weld
    whitelist wipe wonder wrap yield zip zoom
""")

NOUNS = _words("""
    access address age air alarm alias anchor appeal approach approximate arrow aspect audit author bar base bat battle
    bear bill block blog board book bother bottle box branch break bridge bridle brief broadcast brush bucket buffer
    bug bundle bus butter cache camp cap center centre chair challenge chart claim class cloud coach coat code
    color colour command compact compound compromise concern conflict console contract contrast control cook cool
    correlate cost craft cream credit cue cycle damage date deal default demand deposit design detail digest direct
    discount display dispute divert double doubt draft dress drill echo ejaculate equal even exchange exercise
    exhaust exploit express fake fashion fast fax fear file film filter fine fish fit flow focus fork form fragment
    fuel function fund gain garden gear glance grade group guard guarantee guide hand handle harm harvest hash
    heat highlight hint hold honor honour hook house index influence initial input instance interface interrupt
    invite invoice iron issue judge key lace land laugh layer level leverage light line live log love-bomb lunch
    machine man manifest map market master mate matter mean message milk mock model mouth multiple name narrow need
    network number nurse object order output overlap package pad page panic paper paragraph parallel pass path
    pattern pay-back peer pencil perfect photograph picture piece pilot place plan plant plate play pledge plot pocket
    position pot power prefix present price produce program project prompt promise prototype pulse pump purchase
    quiet reason reference regard remark rescue resort resource respite result resume root rope round route row rule
    salt sample sandbox saw scope score seat sense sequence service shadow shape shelter shield shock signal simple
    single sink site size sketch skirt skin slip slot smoke snapshot soap sound source space spark speed spell spice
    stage staff stall stamp stash station stock storm stream stress structure style subject suffix suit sum support
    surface surprise suspect table target task telephone template tempt test text thank thin time tip title toast
    tone tool toss total tower train transfer transit transport trap trick tube type update-index value veil vent
    version voice void volume volunteer warm warrant weather weight welcome wind wire witness word work worry
    wound zone
""")

VERB_NOUNS = VERBS | MIXED | NOUNS

# These take a clause ("Ensure CI passes"), so a finite verb later in the sentence says nothing about the opener.
CLAUSAL = _words("""
    ensure verify confirm remember note notice check assume believe imagine see realise realize recall hear know tell
    ask suppose consider pretend pray guess explain decide determine prove say feel find think expect recognise
    recognize understand remind inform advise promise swear trust make let help have watch keep get leave
""")

DITRANSITIVE = _words("""
    give send show tell teach offer grant assign hand lend pay buy bring ask make get leave save allow deny promise
""")

DETERMINERS = _words("""
    the a an this that these those my your his her its our their any all each every both some no another such more
    less enough whatever whichever several many few most either neither other
""")

OBJECTS = _words("""
    it me him them us yourself yourselves itself themselves himself everything anything something nothing everyone
    anyone someone everybody anybody somebody one
""")

SUBJECTS = _words("i you he she it they we who there i'm i'll i've you'll you're it's they're we're that's there's")

# A word which starts a clause of its own: what follows it says nothing about the opener.
CLAUSE_STARTS = _words("""
    that which who whose whom where when whenever what whatever why how if unless because since so as than until till
    before after while although though but whether
""")

PARTICLES = _words("up out off down away back into onto through around ahead along over aside apart together")
PREPOSITIONS = _words("""
    to for on with at from in of by about against between among under without within across behind above below beyond
    inside outside near toward towards upon via per during like onto into through over
""")

AUXILIARIES = _words("""
    is was are were has had does did can could will would may might must should shall cannot isn't wasn't aren't weren't
    hasn't hadn't doesn't didn't can't couldn't won't wouldn't mustn't shouldn't haven't isnt wasnt doesnt didnt cant
    wont
""")

# Third person and past forms of what tools and files do, which are hardly ever plural nouns or adjectives.
FINITE = _words("""
    fails hangs exits needs takes makes gets gives goes hides throws rejects depends breaks comes becomes begins
    brings keeps knows leads leaves lets lives loses means occurs happens puts runs says seems sends sits stands
    starts stays stops tells thinks tries turns wants works writes reads returns requires causes produces expects
    leaks crashes panics freezes stalls succeeds warns complains assumes treats resolves compiles
    appears exists ends differs falls finishes ends looks shows spawns swallows strips skips
    broke took went gave got came became began brought bought caught chose drew fell felt forgot froze grew held hid
    hung kept knew led lost made meant met ran said sank sent slept spent stood stuck threw told woke wrote won tore
    swept sped overwrote
""")

# Base forms which are finite after a plural ("Test files hang"); after "and", "or", "to" they are not.
PLURAL_FINITE = _words("""
    have do don't fail hang break leak crash need depend exist inherit appear remain differ expire lack lose require
    behave occur succeed
""")

# Words before the opener which change nothing.
LEAD_INS = _words("""
    also and but or so then now just simply first firstly second secondly third thirdly next last lastly finally
    instead again otherwise therefore thus hence maybe perhaps well ok okay yes yeah yep no hey hi hello oh ah dear
    guys folks everybody everyone anyway anyways besides meanwhile afterwards afterward later better best still
    however moreover furthermore additionally alternatively consequently subsequently accordingly nevertheless jeez
    seriously honestly definitely certainly absolutely immediately quickly carefully slowly once gently lol wow ps
    p.s fyi btw today tomorrow tonight sometimes only rather plus even if-possible please-do lets-say attention sorry
    instantly preferably ideally right
""")

# Words before the opener after which every verb is an order.
URGES = _words("please pls plz plse pleas kindly always never do")

LABELS = _words("""
    note notes tip tips hint important warning caution attention reminder remember fix solution workaround remedy
    lesson lessons rule rules action actions task tasks todo instruction instructions step ps p.s fyi btw suggestion
    advice recommendation system assistant user human agent ai admin administrator urgent critical summary update edit
    conclusion takeaway moral practice answer response prompt request directive procedure correction command goal
    objective notice announcement alert fact problem details info information policy requirement caveat nb n.b
""")

# Openings of a phrase or clause which may stand before an order: "If X, do Y", "To fix it, run Z".
PREFACES = _words("""
    if when whenever once before after unless until till while whilst since because as to in on at for with without by
    from during instead rather otherwise should given under per upon whatever wherever however although though even
    having being above besides regarding concerning assuming provided where next every first whether short despite
    following between then
""")

# After a comma in mid-sentence these announce an order.
ASIDES = _words("so then please pls plz just instead therefore always never don't dont kindly")

DUTIES = _words("must should shall mustn't shouldn't shalt ought")
AGENTS = _words("assistant agent agents ai llm llms claude chatgpt gpt copilot codex gemini chatbot assistants")
ABBREVIATIONS = _words("e.g i.e etc vs cf eg ie mr mrs ms dr st fig approx resp incl esp")
