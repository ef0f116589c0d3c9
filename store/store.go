package store

import (
	"motorpool/store/activity"
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Postgres is the record of everything. It is safe for concurrent use.
type Postgres struct {
	*pg.DB
	*activity.Log

	claims      *groupcommit.Batcher[*telematics.Command, claimed]
	settlements *groupcommit.Batcher[*delivery.Settlement, *telematics.Command]
	twins       *groupcommit.Batcher[telematics.VehicleID, *vehicleRow]
	records     *groupcommit.Batcher[telematics.VehicleID, *vehicleRow]
	unrecorded  *groupcommit.Batcher[delivery.Unrecorded, delivery.UnrecordedFate]
}

// New assembles the record, like [pg.New].
func New(config pg.Config) (*Postgres, error) {
	db, err := pg.New(config)
	if err != nil {
		return nil, err
	}
	p := &Postgres{DB: db, Log: activity.New(db)}
	p.claims = pg.NewBatcher(db, p.claim)
	p.settlements = pg.NewBatcher(db, p.settle)
	p.twins = pg.NewBatcher(db, p.readTwins(selectVersionedTwins))
	p.records = pg.NewBatcher(db, p.readTwins(selectRecords))
	p.unrecorded = pg.NewBatcher(db, p.noteUnrecorded)
	return p, nil
}
