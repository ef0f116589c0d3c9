package health

import "time"

const (
	// checkBudget is how long a check may take; one that hangs is not ready. Half makes an instance
	// with a slow server not ready; with double, probes time out first.
	checkBudget = 2 * time.Second
	// probeEvery is how long the public handler repeats its last result, so that callers cannot
	// overload the servers with probes. Half doubles that load; double shows a change later.
	probeEvery = time.Second
)
