package contract

const (
	// maxFields is how many fields of a request an answer names as wrong. With half, a caller with
	// many mistakes repeats its request more often; double makes answers to nonsense longer: 5,000
	// objects in a list were answered with 5 MB.
	maxFields = 32
	// maxGuessed is the length in bytes of the longest name that is compared with others to find
	// the one that was meant. With half, long names get no suggestion; double takes four times as
	// long for names made to take long.
	maxGuessed = 64
)
