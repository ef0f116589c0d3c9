// Package brokertest has the contracts of the ports of packages broker and ingest, as test suites
// that every implementation runs: [CommandsContract], [VehiclesContract], [PendingTableContract],
// [TwinsContract], [ContactsContract] and [EventsContract]. [Memory] implements the ports without a
// server.
//
// Only test files import it.
package brokertest
