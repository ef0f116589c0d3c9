package vehicles

import "time"

const (
	// Vehicles that an import writes in one transaction: some 20 ms. Half: more commits. Double:
	// a command to one of them waits longer.
	importBatch = 200
	// Time for which an import waits for one lock, while it holds others: less than a claim waits
	// for its vehicle. Half: it starts over more often on a busy server. Double: commands to the
	// vehicles that it holds meanwhile are refused.
	importLockTimeout = 150 * time.Millisecond
	// Pause after which an import tries again what others have locked; a choice. Half: more
	// attempts. Double: the import ends later than the other transaction by that.
	importRetry = 300 * time.Millisecond

	// How long the audit log entry of an import may take, also of one that was interrupted; a
	// choice. Half: on a busy database an import that was carried out leaves no entry. Double: an
	// interrupted import seems to hang.
	recordTimeout = 10 * time.Second
)
