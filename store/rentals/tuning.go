package rentals

import "time"

const (
	// firstRadius is the radius of the first search, in metres: where vehicles stand close, the
	// nearest ones are found without reading all of them. Half: more searches where they do not;
	// double: more rows are sorted where they do.
	firstRadius = 400

	// radiusGrowth is how much farther the next search reaches. Half: more searches; double: more
	// rows of the last one are not needed.
	radiusGrowth = 4

	// maxCandidates is how many vehicles a search looks at: a page has fewer offers than wanted
	// where that many are not offered. Half: more pages in such places; double: a search there may
	// take twice as long.
	maxCandidates = 4000

	// quotesKept is how long a quote is kept after it has expired. It lets a client know that its
	// quote has expired, and not that there is none. Half would do; double: more rows.
	quotesKept = 24 * time.Hour
)
