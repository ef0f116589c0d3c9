package store

import (
	"testing"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

// During an upgrade an instance of the version before settles commands whose keys it knows
// nothing of.
func TestARefusalByAnOlderInstanceFreesTheKeyToo(t *testing.T) {
	p := open(t, newDatabase(t))
	vehicle, _ := vehicles(t, p)()
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	if _, err := p.db.Exec(`update commands set state = 'rejected', completed_at = now() where id = $1`, c.ID); err != nil {
		t.Fatal(err)
	}
	if made, found, err := p.Made(t.Context(), *c.Key); found || err != nil {
		t.Fatalf("the key still names %s, which did nothing (%v)", made.Command.State, err)
	}
	again := brokertest.NewCommand(vehicle, telematics.Lock)
	again.Key = c.Key
	if claim, err := p.Claim(t.Context(), again); err != nil || !claim.Taken() {
		t.Errorf("under the freed key: %+v, %v", claim, err)
	}
}
