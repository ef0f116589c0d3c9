package link_test

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	v1 "motorpool/telematics/v1"
)

// deliverNothing forwards packets of the MQTT broker, but no messages: acknowledgements and answers
// to pings go on, as where it has stopped to deliver to a client.
func deliverNothing(muted *atomic.Bool) func(to io.Writer, from io.Reader) {
	return func(to io.Writer, from io.Reader) {
		for from := bufio.NewReader(from); ; {
			packet, err := packets.ReadPacket(from)
			if err != nil {
				return
			}
			if _, message := packet.(*packets.PublishPacket); message && muted.Load() {
				continue
			}
			if err := packet.Write(to); err != nil {
				return
			}
		}
	}
}

func TestLink_NoticesSubscriptionsThatDeliverNothing(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var to receiver
	var muted atomic.Bool
	link := startLink(t, newRelay(t, server.ServiceURL(), deliverNothing(&muted)).url(), &to)
	awaitReady(t, link)
	muted.Store(true)
	brokertest.Eventually(t, 40*time.Second, "not ready", func() bool {
		err := link.AllReady()
		return err != nil && link.Ready() != nil && strings.Contains(err.Error(), "presence")
	})
	muted.Store(false)
	awaitReady(t, link)
	car := linktest.Connect(t, server.UnitsURL(), unit)
	linktest.Publish(t, car, v1.AckChannel.Topic(unit), false, "done")
	brokertest.Eventually(t, 5*time.Second, "an answer", func() bool { return to.answers.Load() == 1 })
}

// claimant starts a link that waits to be admitted.
func claimant(t *testing.T, url string, to link.Receiver) *link.Link {
	t.Helper()
	return startLinkWith(t, url, to, func(c *link.Config) { c.AwaitAdmission = true })
}

func TestLink_UntilItIsAdmittedItOnlyHearsClaims(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var first, second receiver
	holder, asker := claimant(t, server.ServiceURL(), &first), claimant(t, server.ServiceURL(), &second)
	exchange := func(l *link.Link, claim string, asks bool) (heard, asked []string) {
		heard, asked, err := l.Exchange(context.Background(), claim, asks)
		if err != nil && !strings.Contains(err.Error(), "not connected") {
			t.Error(err)
		}
		return heard, asked
	}
	brokertest.Eventually(t, 10*time.Second, "it hears its own claim", func() bool {
		heard, _ := exchange(holder, "11111111-a-b-1", false)
		return slices.Contains(heard, "11111111-a-b-1")
	})
	if holder.Ready() == nil || holder.Publish(command([]byte("lock"))) == nil {
		t.Error("it is ready before it is admitted")
	}
	holder.Admit(nil)
	awaitReady(t, holder)
	exchange(holder, "11111111-a-b-2", false)
	hears := func() bool {
		heard, _ := exchange(asker, "22222222-0-c-1", true)
		return slices.Contains(heard, "11111111-a-b-2")
	}
	brokertest.Eventually(t, 10*time.Second, "the claim is heard", hears)
	for range 3 { // one that has the place answers who asks, without another call
		brokertest.Eventually(t, 10*time.Second, "the claim is heard again", hears)
	}
	brokertest.Eventually(t, 10*time.Second, "it hears who asked", func() bool {
		_, asked := exchange(holder, "11111111-a-b-3", false)
		return slices.Contains(asked, "22222222-0-c-1")
	})
	car := linktest.Connect(t, server.UnitsURL(), unit)
	const n = 20
	for range n {
		linktest.Publish(t, car, v1.AckChannel.Topic(unit), false, "done")
		linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, "online")
	}
	brokertest.Eventually(
		t, 5*time.Second, "all answers",
		func() bool { return first.answers.Load() == n && first.presence.Load() >= n },
	)
	if second.answers.Load()+second.presence.Load()+second.reports.Load() > 0 {
		t.Error("the other one received messages of units")
	}
	holder.Admit(context.DeadlineExceeded)
	brokertest.Eventually(t, 5*time.Second, "not ready any more", func() bool {
		err := holder.AllReady()
		return err != nil && strings.Contains(err.Error(), context.DeadlineExceeded.Error())
	})
}
