package history

import (
	"context"
	"slices"
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
	convert := func(row *bucketRow) (samples.Bucket, error) { return row.bucket(q), nil }
	buckets, err := pg.Read(ctx, r.DB.Lists, (*bucketRow).fields, convert, `
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

// statRow has the least, mean and greatest value of a bucket; nil: it has none.
type statRow struct{ least, mean, most *float64 }

func (s *statRow) fields() []any { return []any{&s.least, &s.mean, &s.most} }

type bucketRow struct {
	place                          int
	energy, voltage, speed, signal statRow
	latitude, longitude            *float64
	samples.Bucket
}

func (r *bucketRow) fields() []any {
	return slices.Concat([]any{&r.place}, r.energy.fields(), r.voltage.fields(), r.speed.fields(), r.signal.fields(),
		[]any{&r.latitude, &r.longitude, pg.UTC(&r.LocatedAt), &r.Locked, &r.Ignition})
}

func (r *bucketRow) bucket(q samples.Query) samples.Bucket {
	b := r.Bucket
	b.Begin = q.From.Add(time.Duration(r.place) * q.Width())
	b.Energy, b.Voltage = r.energy.values(samples.Energy), r.voltage.values(samples.Voltage)
	b.Speed, b.Signal = r.speed.values(samples.Speed), r.signal.values(samples.Signal)
	if !b.LocatedAt.IsZero() {
		b.Position = &telematics.Position{
			Latitude: *r.latitude / samples.Latitude.Step(), Longitude: *r.longitude / samples.Longitude.Step(),
		}
	}
	return b
}

func (s statRow) values(f samples.Field) *samples.Values {
	if s.mean == nil {
		return nil
	}
	return &samples.Values{Min: *s.least / f.Step(), Avg: *s.mean / f.Step(), Max: *s.most / f.Step()}
}
