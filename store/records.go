package store

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
)

// recordsSize is of how many vehicles a record is remembered, at up to 1 KB each.
const recordsSize = 1 << 15

// records remembers what orders depend on, as it was last read here. It may be true no more, and nobody acts upon it but by a claim
// that checks it.
type records struct {
	known *lru.Cache[telematics.VehicleID, telematics.Twin]
}

func newRecords() *records {
	known, err := lru.New[telematics.VehicleID, telematics.Twin](recordsSize)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &records{known}
}

func (r *records) keep(t *telematics.Twin) { r.known.Add(t.ID, t.Recollection()) }

func (r *records) find(id telematics.VehicleID) (telematics.Twin, bool) { return r.known.Get(id) }

func (r *records) forget(id telematics.VehicleID) { r.known.Remove(id) }
