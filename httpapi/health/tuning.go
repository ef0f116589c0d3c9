package health

import "time"

const (
	// checkBudget is how long a check may take; one that hangs is not ready. Half makes an instance
	// with a slow server not ready; with double, probes time out first.
	checkBudget = 2 * time.Second
	// lateBy is how much longer a check may take to end with its context. Half calls a check too
	// slow on a busy machine; double answers later.
	lateBy = 250 * time.Millisecond
	// runEvery is how long a run of the checks is the answer to public probes and scrapes, so that
	// callers cannot overload the servers with probes. Half doubles that load; double shows changes
	// later.
	runEvery = time.Second
	// againAfter is the same where a check has failed: an instance that starts is ready soon. Half
	// doubles the load while a server is down; double shows the end of that later.
	againAfter = 50 * time.Millisecond
)
