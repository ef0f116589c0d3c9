package activity

import "time"

const (
	// sealEvery is between two passes of the sealer. Half: twice as many seals where there are few
	// entries; double: an entry can be changed unnoticed for twice as long.
	sealEvery = 10 * time.Second
	// sealEntries are in one seal, at most. Half: a seal's own 200 bytes weigh twice as much;
	// double: its marks no longer fit into the row.
	sealEntries = 300
	// sealBatches is how many batches of sealEntries a pass seals: 3,000 entries a second. Half:
	// less than an instance writes at its best; double: an old log that is sealed for the first
	// time keeps a core busy.
	sealBatches = 100
	// sealRetry is between two looks at the transactions that may still add entries.
	sealRetry = 20 * time.Millisecond
	// sealPatience bounds the wait for those transactions; the next pass tries again. It is longer
	// than a statement of the service may take.
	sealPatience = 5 * time.Second
	// headEvery is between two log messages with the head of the chain.
	headEvery = time.Hour

	// partitionsAhead are the months for which there are partitions in advance. Half: an
	// installation that is stopped for two months adds to the default partition; double: more empty
	// tables.
	partitionsAhead = 2
	// partitionsEvery is between two looks whether partitions are missing.
	partitionsEvery = time.Hour

	// sortedRange is up to which range of time a query reads all entries of that time and sorts
	// them, instead of searching from the newest one. Half: a day that is long ago is not found in
	// time; double: sorting takes too long where there are 2 million entries a day.
	sortedRange = 24 * time.Hour

	// walkSeals are read at a time, with their entries.
	walkSeals = 100
	// maxFindings bounds what a verification reports in detail.
	maxFindings = 1000
)
