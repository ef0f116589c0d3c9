package vehicles

import (
	"context"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// KeyHolders implements httpapi.Units. It reads all units.
func (f *Fleet) KeyHolders(ctx context.Context, key string) (telematics.KeyHolders, error) {
	var holders telematics.KeyHolders
	var missing pq.StringArray
	_, err := pg.One(ctx, f.db.Lists, []any{&holders.Holding, &holders.Missing, &holders.Unreported, &missing}, `
		with fitted as (
			select serial, $1 = any (keys) as holds from units where vehicle_id is not null
		)
		select count(*) filter (where holds) as holding, count(*) filter (where not holds) as missing,
			count(*) filter (where holds is null) as unreported,
			array(select serial from fitted where not holds order by serial limit $2) as missing_units
		from fitted`, key, telematics.MaxMissingUnits)
	for _, unit := range missing {
		holders.MissingUnits = append(holders.MissingUnits, telematics.Unit(unit))
	}
	return holders, unavailable.Wrap("count the units that hold a key", err)
}
