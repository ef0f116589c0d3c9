package store

import (
	"motorpool/store/activity"
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Postgres is the record of everything. It is safe for concurrent use.
type Postgres struct {
	*pg.DB
	*activity.Log
	*vehicles.Fleet

	claims      *groupcommit.Batcher[*telematics.Command, claimed]
	settlements *groupcommit.Batcher[*delivery.Settlement, *telematics.Command]
	unrecorded  *groupcommit.Batcher[delivery.Unrecorded, delivery.UnrecordedResult]
}

// New assembles the record, like [pg.New].
func New(config pg.Config) (*Postgres, error) {
	db, err := pg.New(config)
	if err != nil {
		return nil, err
	}
	p := &Postgres{DB: db, Log: activity.New(db), Fleet: vehicles.New(db)}
	p.claims = pg.NewBatcher(db, p.claim)
	p.settlements = pg.NewBatcher(db, p.settle)
	p.unrecorded = pg.NewBatcher(db, p.noteUnrecorded)
	return p, nil
}
