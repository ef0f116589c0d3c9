package store

import (
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// Postgres is the record of everything. It is safe for concurrent use.
type Postgres struct {
	*pg.DB

	claims      *groupcommit.Batcher[*telematics.Command, claimed]
	settlements *groupcommit.Batcher[*telematics.Settlement, *telematics.Command]
	lines       *groupcommit.Batcher[telematics.Activity, struct{}]
	twins       *groupcommit.Batcher[telematics.VehicleID, *vehicleRow]
	records     *groupcommit.Batcher[telematics.VehicleID, *vehicleRow]
	unrecorded  *groupcommit.Batcher[telematics.Unrecorded, telematics.UnrecordedFate]
}

// New assembles the record, like newDB.
func New(config pg.Config) (*Postgres, error) {
	db, err := pg.New(config)
	if err != nil {
		return nil, err
	}
	p := &Postgres{DB: db}
	p.claims = pg.NewBatcher(db, p.claim)
	p.settlements = pg.NewBatcher(db, p.settle)
	p.lines = pg.NewBatcher(db, p.add)
	p.twins = pg.NewBatcher(db, p.readTwins(selectVersionedTwins))
	p.records = pg.NewBatcher(db, p.readTwins(selectRecords))
	p.unrecorded = pg.NewBatcher(db, p.noteUnrecorded)
	return p, nil
}
