package activity

import "time"

const (
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
)
