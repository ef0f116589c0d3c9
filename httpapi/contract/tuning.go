package contract

// maxFields is how many fields of a request an answer names as wrong. With half, a caller with many
// mistakes repeats its request more often; double makes answers to nonsense longer: 5,000 objects
// in a list were answered with 5 MB.
const maxFields = 32
