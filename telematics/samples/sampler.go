package samples

import (
	"sync"
	"time"

	"motorpool/telematics"
)

// Reason is why a report was not sampled, or a sample is lost.
type Reason string

// The reasons.
const (
	TooOld Reason = "too_old" // it is older than the history that is kept
	Full   Reason = "full"    // MaxBuffered samples wait
	// The vehicle of its unit could not be looked up.
	NoVehicle Reason = "no_vehicle"
	// It was made before the unit was assigned to the vehicle, or the vehicle to its agency.
	Moved   Reason = "moved"
	Refused Reason = "refused" // by Postgres
)

// Sampler reduces reports to samples, and buffers these until they are drained. It is safe for
// concurrent use.
type Sampler struct {
	keep time.Duration
	drop func(Reason, int)

	mu       sync.Mutex // guards what follows
	buffered map[key]*Sample
	// The latest sample of each vehicle that reported in this generation, and in the one before;
	// vehicles in neither are dropped.
	latest, before map[telematics.VehicleID]latest
	generation     time.Time
}

type key struct {
	vehicle telematics.VehicleID
	begin   int64
}

// latest is the cached state of a vehicle as of its latest sample.
type latest struct {
	begin    int64 // Unix time
	has      uint8 // the fields
	locked   int8  // -1: unknown
	ignition int8  // likewise
	fast     bool  // its speed was above zero
	moves    bool
	change   int64 // the Driving interval of the latest change that has a sample
	owes     bool  // it was not the last one in that interval
}

// New returns a sampler of reports that are less old than keep. It calls drop, which must not
// block, with the number of reports or samples that are dropped, and why.
func New(keep time.Duration, drop func(Reason, int)) *Sampler {
	return &Sampler{keep: keep, drop: drop, buffered: map[key]*Sample{}, latest: map[telematics.VehicleID]latest{}}
}

// Add samples a report that arrived at an instant. It does not block.
func (s *Sampler) Add(
	vehicle telematics.VehicleID, agency telematics.AgencyID, p telematics.Powertrain, r *telematics.Report,
	now time.Time,
) {
	sample := Sample{Vehicle: vehicle, Agency: agency, At: r.At}
	if !sample.read(r, p) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(r.At) >= s.keep {
		s.drop(TooOld, 1)
		return
	}
	s.rotate(now)
	cached, ok := s.latest[vehicle]
	if !ok {
		if cached, ok = s.before[vehicle]; !ok {
			cached = latest{locked: -1, ignition: -1}
		}
	}
	// The report is late. The sample of a change may begin a second after that.
	if ok && r.At.Unix() < cached.begin-1 {
		alone := latest{locked: -1, ignition: -1}
		alone.update(&sample)
		s.buffer(&sample, alone.interval(r.At))
		return
	}
	changed := cached.update(&sample) || cached.owes
	begin, slot := cached.interval(r.At), r.At.Truncate(Driving).Unix()
	// The sample of the interval may be taken, by another instance too: a change has another one.
	if cached.owes = changed && slot == cached.change; changed && !cached.owes {
		cached.change, begin = slot, max(r.At.Unix(), cached.begin+1)
	}
	if begin != cached.begin {
		cached.begin, cached.has = begin, 0
	}
	hasNewField := sample.has&^cached.has != 0
	cached.has |= sample.has
	s.latest[vehicle] = cached
	if hasNewField {
		s.buffer(&sample, begin)
	}
}

// update applies a sample's state, and reports whether the vehicle has locked, unlocked, begun or
// ceased to move.
func (l *latest) update(s *Sample) (changed bool) {
	for _, state := range [...]struct {
		field Field
		is    *int8
	}{{Locked, &l.locked}, {Ignition, &l.ignition}} {
		if s.has&(1<<state.field) != 0 {
			value := int8(s.values[state.field])
			changed = changed || *state.is >= 0 && *state.is != value
			*state.is = value
		}
	}
	if s.has&(1<<Speed) != 0 {
		l.fast = s.values[Speed] > 0
	}
	moves := l.fast || l.ignition == 1
	changed = changed || moves != l.moves && l.begin != 0
	l.moves = moves
	return changed
}

// interval returns the beginning of the interval of a report: that of the latest sample, if that
// was of a change, or of a vehicle that moved, in it.
func (l *latest) interval(at time.Time) int64 {
	if l.moves {
		return max(l.begin, at.Truncate(Driving).Unix())
	}
	return max(l.begin, at.Truncate(Resting).Unix())
}

// rotate drops the state of vehicles that have not reported for 2 to 4 resting intervals.
func (s *Sampler) rotate(now time.Time) {
	if now.Sub(s.generation) >= 2*Resting {
		s.latest, s.before, s.generation = make(map[telematics.VehicleID]latest, len(s.latest)), s.latest, now
	}
}

// buffer adds a sample; the caller holds the lock. If a vehicle changes its agency within an
// interval, the first sample, of the former agency, is kept.
func (s *Sampler) buffer(sample *Sample, begin int64) {
	k := key{sample.Vehicle, begin}
	if waiting, ok := s.buffered[k]; ok {
		if waiting.Agency == sample.Agency {
			waiting.join(sample)
		}
		return
	}
	if len(s.buffered) >= MaxBuffered {
		s.drop(Full, 1)
		return
	}
	buffered := *sample
	buffered.Begin = time.Unix(begin, 0).UTC()
	s.buffered[k] = &buffered
}

// Drain removes and returns all buffered samples, in no order.
func (s *Sampler) Drain() []*Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	drained := make([]*Sample, 0, len(s.buffered))
	for _, sample := range s.buffered {
		drained = append(drained, sample)
	}
	s.buffered = map[key]*Sample{}
	return drained
}

// PutBack puts drained samples that were not stored back into the buffer.
func (s *Sampler) PutBack(drained []*Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range drained {
		s.buffer(sample, sample.Begin.Unix())
	}
}

// Waiting returns how many samples are buffered.
func (s *Sampler) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buffered)
}
