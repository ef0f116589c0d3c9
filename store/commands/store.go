// Package commands stores commands in Postgres: claims, settlements, progress, orders to many
// vehicles, idempotency keys, halts, and the numbers of commands.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package commands

import (
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Store stores commands in Postgres. It is safe for concurrent use.
type Store struct {
	db    *pg.DB
	cache Cache
	// Batchers: calls that come together share a statement and a commit. claims calls
	// Store.claim, settlements Store.settleUnlocked, lateSettlements Store.settleMoved,
	// unrecorded Store.noteUnrecorded.
	claims          *groupcommit.Batcher[*telematics.Command, claimed]
	settlements     *groupcommit.Batcher[*delivery.Settlement, settled]
	lateSettlements *groupcommit.Batcher[*delivery.Settlement, *telematics.Command]
	unrecorded      *groupcommit.Batcher[delivery.Unrecorded, delivery.UnrecordedResult]
}

// Cache holds the vehicles by which orders are accepted. A claim detects whether a cached one is
// out of date.
type Cache interface {
	// Confirm notes that a vehicle has the given version now.
	Confirm(telematics.VehicleID, int64)
	// Forget removes a vehicle.
	Forget(telematics.VehicleID)
}

// New returns the store of the commands in a database. It does no I/O.
func New(db *pg.DB, cache Cache) *Store {
	s := &Store{db: db, cache: cache}
	s.claims = pg.NewBatcher(db, s.claim)
	s.settlements = pg.NewBatcher(db, s.settleUnlocked)
	s.lateSettlements = pg.NewBatcher(db, s.settleMoved)
	s.unrecorded = pg.NewBatcher(db, s.noteUnrecorded)
	return s
}
