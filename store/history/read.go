package history

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// Reader reads the history.
type Reader struct {
	DB   *pg.DB
	Days int // that are kept; 0: none
}

// TelemetryDays returns for how many days samples are kept; 0: there is no history.
func (r Reader) TelemetryDays() int { return r.Days }

// Telemetry implements httpapi.Telemetry. Samples that are older than Days, and not removed yet,
// are left out.
func (r Reader) Telemetry(ctx context.Context, q samples.Query) ([]samples.Bucket, error) {
	buckets, err := pg.List(ctx, r.DB.Lists, func(row bucketRow) samples.Bucket { return row.bucket(q) }, `
		select least(floor(extract(epoch from at + after * interval '1 s' - $3) / $5)::integer, $6 - 1) as place,
			min(energy) as energy_min, avg(energy) as energy_avg, max(energy) as energy_max,
			min(voltage) as voltage_min, avg(voltage) as voltage_avg, max(voltage) as voltage_max,
			min(speed) as speed_min, avg(speed) as speed_avg, max(speed) as speed_max,
			min(signal) as signal_min, avg(signal) as signal_avg, max(signal) as signal_max,
			(array_agg(latitude order by at desc) filter (where latitude is not null and longitude is not null))[1] as latitude,
			(array_agg(longitude order by at desc) filter (where latitude is not null and longitude is not null))[1] as longitude,
			(array_agg(at + after * interval '1 s' order by at desc) filter (where latitude is not null and longitude is
			not null))[1] as located_at,
			(array_agg(locked order by at desc) filter (where locked is not null))[1] as locked,
			(array_agg(ignition order by at desc) filter (where ignition is not null))[1] as ignition
		from telemetry
		where vehicle_id = $1 and ($2 = 0 or agency_id = $2) and at > $3::timestamptz - $7 * interval '1 s' and at < $4
			and at + after * interval '1 s' >= greatest($3, now() - $8 * interval '1 day') and at + after * interval '1 s' < $4
		group by place order by place`,
		int64(q.Vehicle), int64(q.Agency), q.From, q.To, q.Width().Seconds(), q.Buckets, samples.Resting.Seconds(), r.Days)
	return buckets, unavailable.Wrap("read the telemetry history", err)
}

type bucketRow struct {
	Place      int        `db:"place"`
	EnergyMin  *float64   `db:"energy_min"`
	EnergyAvg  *float64   `db:"energy_avg"`
	EnergyMax  *float64   `db:"energy_max"`
	VoltageMin *float64   `db:"voltage_min"`
	VoltageAvg *float64   `db:"voltage_avg"`
	VoltageMax *float64   `db:"voltage_max"`
	SpeedMin   *float64   `db:"speed_min"`
	SpeedAvg   *float64   `db:"speed_avg"`
	SpeedMax   *float64   `db:"speed_max"`
	SignalMin  *float64   `db:"signal_min"`
	SignalAvg  *float64   `db:"signal_avg"`
	SignalMax  *float64   `db:"signal_max"`
	Latitude   *float64   `db:"latitude"`
	Longitude  *float64   `db:"longitude"`
	LocatedAt  *time.Time `db:"located_at"`
	Locked     *bool      `db:"locked"`
	Ignition   *bool      `db:"ignition"`
}

func (r bucketRow) bucket(q samples.Query) samples.Bucket {
	b := samples.Bucket{
		Begin:   q.From.Add(time.Duration(r.Place) * q.Width()),
		Energy:  values(samples.Energy, r.EnergyMin, r.EnergyAvg, r.EnergyMax),
		Voltage: values(samples.Voltage, r.VoltageMin, r.VoltageAvg, r.VoltageMax),
		Speed:   values(samples.Speed, r.SpeedMin, r.SpeedAvg, r.SpeedMax),
		Signal:  values(samples.Signal, r.SignalMin, r.SignalAvg, r.SignalMax), Locked: r.Locked, Ignition: r.Ignition,
	}
	if r.LocatedAt != nil {
		b.LocatedAt = *r.LocatedAt
		b.Position = &telematics.Position{
			Latitude: *r.Latitude / samples.Latitude.Step(), Longitude: *r.Longitude / samples.Longitude.Step(),
		}
	}
	return b
}

func values(f samples.Field, least, mean, most *float64) *samples.Values {
	if mean == nil {
		return nil
	}
	return &samples.Values{Min: *least / f.Step(), Avg: *mean / f.Step(), Max: *most / f.Step()}
}
