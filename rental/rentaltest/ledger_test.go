package rentaltest_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/telematics"
)

func TestLedger_KeepsTheContract(t *testing.T) {
	rentaltest.LedgerContract(t, func(*testing.T) rentaltest.ChargeRecord {
		l := rentaltest.NewLedger()
		var clients, bookings atomic.Int64
		return rentaltest.ChargeRecord{
			Here: l, There: l,
			Client:     func() rental.ClientID { return rental.ClientID(clients.Add(1)) },
			GiveCard:   l.GiveCard,
			SetDefault: l.SetDefault,
			Add: func(client rental.ClientID, c rental.Charge) rental.Charge {
				if c.Booking == 0 {
					c.Booking = rental.BookingID(bookings.Add(1))
				}
				return l.Add(client, c)
			},
			Amend:  func(c rental.Charge, g rental.Goal, amount rental.Minor) { l.Amend(c.ID, g, amount) },
			Charge: l.Charge,
			Lines: func(b rental.BookingID, k rental.ChargeKind) []telematics.Activity {
				return slices.DeleteFunc(l.Entries(), func(a telematics.Activity) bool {
					return a.Booking != int64(b) || a.Action != rental.ChargeActivity(k)
				})
			},
		}
	})
}

func TestNotices_KeepTheContract(t *testing.T) {
	rentaltest.NoticesContract(t, func(*testing.T) rentaltest.NoticeRecord {
		s := &rentaltest.Notices{}
		return rentaltest.NoticeRecord{Here: s, There: s}
	})
}
