package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// publish is the process that speaks for all units. It prints what it has published.
type publish struct {
	Broker      string
	Password    string
	Counts      string `help:"Where whoever takes the reports says what became of them."`
	Vehicles    int
	Connections int           `default:"1"`
	From        int           `help:"Number of the report before the first one of each vehicle."`
	For         time.Duration `help:"How long."`
	Rate        float64       `help:"Reports a second; 0: as many as come to an end."`
	Window      int64         `help:"Reports on their way, at most, where no rate is given."`
}

// published is what was.
type published struct {
	Begin    time.Time `json:"begin"` // of the first report
	End      time.Time `json:"end"`   // of the last one
	Messages int64     `json:"messages"`
	Last     []int     `json:"last"` // number of the last report of each vehicle; 0: it sent none
}

// perWrite is how many reports are written at once, at most: 64 KB.
const perWrite = 100

func (p publish) Run(ctx context.Context) error {
	result := published{Last: make([]int, p.Vehicles)}
	var crews []*crew
	for i := range p.Connections {
		c, err := p.newCrew(i, result.Last)
		if err != nil {
			return err
		}
		defer c.gateway.conn.Close()
		crews = append(crews, c)
	}
	before, err := readLedger(ctx, p.Counts)
	if err != nil {
		return err
	}
	result.Begin = time.Now()
	if err := p.load(ctx, crews, before); err != nil {
		return err
	}
	result.End = time.Now()
	for _, c := range crews {
		result.Messages += c.sent
	}
	for v, last := range result.Last {
		if last == p.From {
			result.Last[v] = 0
		}
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// load lets the crews work, and returns when all that they sent was acknowledged.
func (p publish) load(ctx context.Context, crews []*crew, before ledger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working, cancel := context.WithTimeout(ctx, p.For)
	defer cancel()
	pace := newPace()
	var all errgroup.Group
	for _, c := range crews {
		go func() { c.deaf <- c.gateway.countAcks() }() // ends with the connection
		all.Go(func() error {
			defer cancel() // one alone would go on with the vehicles of some
			return c.work(working, ctx, pace)
		})
	}
	all.Go(func() error {
		defer cancel()
		if p.Rate > 0 {
			return pace.open(working, p.Rate)
		}
		return pace.closed(working, p.Window, func(ctx context.Context) (int64, error) {
			now, err := readLedger(ctx, p.Counts)
			return now.since(before).ended(), err
		})
	})
	return all.Wait()
}

// crew is a connection and the vehicles that report through it: in order, since they have no other.
type crew struct {
	gateway *gateway
	reports []*report
	last    []*int
	next    int
	sent    int64
	deaf    chan error // why no more acknowledgements are counted
}

func (p publish) newCrew(number int, last []int) (*crew, error) {
	g, err := dialGateway(p.Broker, p.Password, fmt.Sprintf("bench-gateway-%d", number))
	if err != nil {
		return nil, err
	}
	c := &crew{gateway: g, deaf: make(chan error, 1)}
	for v := number; v < p.Vehicles; v += p.Connections {
		r, err := reportOf(unitOf(v + 1))
		if err != nil {
			return nil, err
		}
		last[v] = p.From
		c.reports, c.last = append(c.reports, r), append(c.last, &last[v])
	}
	return c, nil
}

// work publishes until the load ends, and returns when everything was acknowledged.
func (c *crew) work(working, ctx context.Context, pace *pace) error {
	for {
		n := pace.claim(working, perWrite)
		if n == 0 {
			return c.awaitAcks(ctx)
		}
		now := instant(time.Now())
		for range n {
			last := c.last[c.next]
			*last++
			if err := fits(*last); err != nil {
				return err
			}
			c.gateway.add(c.reports[c.next], *last, now)
			c.next = (c.next + 1) % len(c.reports)
		}
		if err := c.gateway.send(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		c.sent += n
	}
}

const acksWithin = 30 * time.Second

func (c *crew) awaitAcks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, acksWithin)
	defer cancel()
	for c.gateway.acked.Load() < c.sent {
		select {
		case err := <-c.deaf:
			return fmt.Errorf("publish: connection lost: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("publish: %d of %d reports acknowledged: %w", c.gateway.acked.Load(), c.sent, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
