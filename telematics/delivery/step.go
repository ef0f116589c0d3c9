package delivery

// The steps of a command, by whose names an execution trace (runtime/trace) has regions that tell where its time goes.
// While no trace is taken they cost nothing.
const (
	StepHTTP     = "http"            // a request, from its headers to its answer
	StepAdmit    = "admit"           // who calls, whether they may, and whether the request is sound
	StepLookUp   = "look up vehicle" // with what is known of it, and whether anything speaks against the order
	StepClaim    = "claim"           // the lane, with the row: a commit of Postgres
	StepSign     = "sign"
	StepRegister = "register"      // in the table of pending commands, Redis: it begins with the claim, and this is the wait that is left
	StepPublish  = "publish"       // until the MQTT client has taken it, each time
	StepAir      = "air"           // from there until the caller's goroutine knows the end: MQTT, the unit, and the three below
	StepDecode   = "decode answer" // of which a command may have several
	StepMerge    = "merge report"  // into what Redis has, with all that has been reported at that moment
	StepSettle   = "settle"        // by an answer, with the audit log entry: a commit of Postgres
	StepAnswer   = "answer"        // the caller
)

// Steps lists them in the order in which they begin.
var Steps = []string{
	StepHTTP, StepAdmit, StepLookUp, StepClaim, StepSign, StepRegister, StepPublish, StepAir, StepDecode, StepMerge, StepSettle, StepAnswer,
}
