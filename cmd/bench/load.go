package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"motorpool/cmd/internal/service"
)

const (
	// warmUp is how long each process works before it is measured.
	warmUp = 2 * time.Second
	// endsWithin is how long the last reports may be on their way without any of them arriving.
	endsWithin = 30 * time.Second
	// readBack is how many vehicles are asked for through the API.
	readBack = 100
)

// load runs one load after the other over the same vehicles, whose reports go on from where they were.
type load struct {
	*world
	window int
	lines  int
	from   int // number of the last report that any vehicle has sent
}

// floor has a subscriber take the reports that only counts.
func (l *load) floor(ctx context.Context, d time.Duration) (ingestRound, error) {
	subscriber, address, err := attend(ctx, "subscribe", "--broker", l.mosquitto.ServiceURL(), "--password", servicePassword)
	if err != nil {
		return ingestRound{}, err
	}
	round, err := l.run(ctx, "http://"+address, meters{"subscriber": subscriber.pid(), "mosquitto": l.mosquitto.PID()}, d, 0, counted{})
	return round, errors.Join(err, subscriber.stop())
}

// service has the service take the reports, at a rate, or as many as it can.
func (l *load) service(ctx context.Context, d time.Duration, rate float64) (round ingestRound, err error) {
	n, err := l.serve(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	w, err := openWitness(l.postgres.URL())
	if err != nil {
		return round, err
	}
	defer w.close()
	if round, err = l.run(ctx, n.Internal+"/metrics", meters{
		"service": n.PID(), "mosquitto": l.mosquitto.PID(), "redis": l.redis.PID(), "postgres": l.postgres.PID(),
	}, d, rate, w); err != nil {
		return round, err
	}
	round.Unread, err = w.unread(ctx, n.Public, l.admin, readBack)
	return round, err
}

// ending tells whether what was published is where it belongs.
type ending interface {
	// stale counts the vehicles whose last report is not.
	stale(ctx context.Context, last []int) (int, error)
}

// counted is the end of who only counts.
type counted struct{}

func (counted) stale(context.Context, []int) (int, error) { return 0, nil }

// run warms up, publishes, and waits for the end.
func (l *load) run(ctx context.Context, counts string, m meters, d time.Duration, rate float64, end ending) (ingestRound, error) {
	if _, _, err := l.publish(ctx, counts, warmUp, rate); err != nil {
		return ingestRound{}, err
	}
	if err := l.quiet(ctx, counts); err != nil {
		return ingestRound{}, err
	}
	before, err := readLedger(ctx, counts)
	if err != nil {
		return ingestRound{}, err
	}
	begin, err := m.read()
	if err != nil {
		return ingestRound{}, err
	}
	p, publisher, err := l.publish(ctx, counts, d, rate)
	if err != nil {
		return ingestRound{}, err
	}
	round := ingestRound{Messages: p.Messages, Published: float64(p.Messages) / p.End.Sub(p.Begin).Seconds()}
	ended, err := l.awaitEnd(ctx, counts, before, p, end)
	if err != nil {
		return round, err
	}
	round.Behind = ended.at.Sub(p.End).Seconds()
	round.Rate = float64(p.Messages) / ended.at.Sub(p.Begin).Seconds()
	round.Counts, round.Stale, round.Lost = ended.ledger, ended.stale, ended.ledger.lost()
	if missing := p.Messages - ended.ledger[reportsTaken]; missing != 0 {
		round.Lost["not_taken"] = missing
	}
	after, err := m.read()
	if err != nil {
		return round, err
	}
	round.Used = used(begin, after)
	round.Used["publisher"] = publisher
	return round, nil
}

func (l *load) publish(ctx context.Context, counts string, d time.Duration, rate float64) (published, usage, error) {
	var p published
	u, err := work(ctx, &p, "publish", "--broker", l.mosquitto.ServiceURL(), "--password", gatewayPassword, "--counts", counts,
		"--vehicles", strconv.Itoa(l.vehicles), "--from", strconv.Itoa(l.from), "--for", d.String(),
		"--rate", strconv.FormatFloat(rate, 'f', 0, 64), "--window", strconv.Itoa(l.window), "--connections", strconv.Itoa(l.lines))
	if err == nil {
		l.from = max(l.from, slices.Max(p.Last))
	}
	return p, u, err
}

// quiet waits until what was published before has ended.
func (l *load) quiet(ctx context.Context, counts string) error {
	var last int64 = -1
	return service.Eventually(ctx, endsWithin, "the warm-up has ended", func(ctx context.Context) bool {
		now, err := readLedger(ctx, counts)
		quiet := err == nil && now.ended() == last && now[reportsTaken] <= last
		last = now.ended()
		return quiet
	})
}

// ended is how a load came to its end.
type ended struct {
	at     time.Time
	ledger ledger
	stale  int
}

// awaitEnd waits until every report has come to an end, and the last of each vehicle is where it belongs. It gives up, and says
// what is missing, once nothing has moved for endsWithin.
func (l *load) awaitEnd(ctx context.Context, counts string, before ledger, p published, end ending) (ended, error) {
	var e ended
	moved, progress := time.Now(), ""
	for {
		now, err := readLedger(ctx, counts)
		if err != nil {
			return e, err
		}
		e.ledger = now.since(before)
		givenUp := time.Since(moved) > endsWithin
		if e.ledger.ended() >= p.Messages || givenUp {
			if e.stale, err = end.stale(ctx, p.Last); err != nil {
				return e, err
			}
			e.at = time.Now()
			if e.stale == 0 || givenUp {
				return e, nil
			}
		}
		if now := fmt.Sprint(e.ledger.ended(), e.stale); now != progress {
			moved, progress = time.Now(), now
		}
		select {
		case <-time.After(closedTick):
		case <-ctx.Done():
			return e, ctx.Err()
		}
	}
}

// settleIn lets every vehicle report once, and waits until that is written down.
func (l *load) settleIn(ctx context.Context, counts string) error {
	eyes, err := openWitness(l.postgres.URL())
	if err != nil {
		return err
	}
	defer eyes.close()
	p, _, err := l.publish(ctx, counts, warmUp, float64(l.vehicles))
	if err != nil {
		return err
	}
	return service.Eventually(ctx, endsWithin, "every vehicle has reported", func(ctx context.Context) bool {
		stale, err := eyes.stale(ctx, p.Last)
		return err == nil && stale == 0
	})
}
