package activity

import "time"

const (
	// sealEvery is the interval of the sealer's passes; a choice. Half: twice as many seals where
	// there are few entries. Double: an entry can be changed unnoticed for twice as long.
	sealEvery = 10 * time.Second
	// sealEntries is the most entries in one seal. Half: the 200 bytes of a seal without its marks
	// take twice the space per entry. Double: its marks no longer fit into the row.
	sealEntries = 300
	// sealBatches is how many batches of sealEntries a pass seals: 3,000 entries a second. Half:
	// less than an instance writes at its best; double: an old log that is sealed for the first
	// time keeps a core busy.
	sealBatches = 100
	// sealRetry is the interval of queries for the transactions that may still add entries.
	sealRetry = 20 * time.Millisecond
	// sealPatience bounds the wait for those transactions; the next pass tries again. It is longer
	// than a statement of the service may take.
	sealPatience = 5 * time.Second
	// unsealedSpan is the longest time between the first and the last entry of a log without any
	// seal. Half: a sealer that failed for half an hour looks like one that was tampered with;
	// double: seals can be removed unnoticed for longer after the installation began.
	unsealedSpan = time.Hour
	// headEvery is the interval of log messages with the head of the chain.
	headEvery = time.Hour

	// partitionsAhead is the number of months for which partitions are added in advance. Half: an
	// installation that is stopped for two months adds to the default partition; double: more empty
	// tables.
	partitionsAhead = 2
	// partitionsEvery is the interval of checks for missing partitions. Half: more queries; double:
	// more entries have to be moved from the default partition after a leap of the clock.
	partitionsEvery = time.Minute

	// sortedRange is the longest range of time for which a query reads and sorts all entries of the
	// range, instead of searching from the newest entry. Half: a day that is long ago is not found
	// in time; double: sorting takes too long where there are 2 million entries a day.
	sortedRange = 24 * time.Hour

	// walkSeals is the number of seals that are read at a time, with their entries.
	walkSeals = 100
	// maxFindings limits the findings that a verification reports in detail.
	maxFindings = 1000
)
