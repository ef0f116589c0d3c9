package contract

const (
	// maxUnknown is how many unknown members of an object are named in an answer. With half, a
	// caller with many mistakes repeats its request more often; double makes answers to nonsense
	// longer.
	maxUnknown = 16
	// maxGuessed is the length in bytes of the longest name that is compared with others to find
	// the one that was meant. With half, long names get no suggestion; double takes four times as
	// long for names made to take long.
	maxGuessed = 64
)
