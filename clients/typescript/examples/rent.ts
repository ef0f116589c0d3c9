// Rents the nearest car for an hour, as a client's app does. With make dev running, in the folder of the repository:
//   .ci/npm clients/typescript build; set -a; source .dev/env; set +a; node clients/typescript/dist/examples/rent.js
import { Motorpool, MotorpoolError, move, type Transition } from '../src/index.js'; // in your app: 'motorpool-client'

const { BASE_URL, CLIENT_TOKEN, AGENCY_KEY_ID, AGENCY_SECRET } = process.env;
if (!BASE_URL || !CLIENT_TOKEN || !AGENCY_KEY_ID || !AGENCY_SECRET) throw new Error('the variables of .dev/env are not set');
const api = new Motorpool({ baseUrl: BASE_URL, token: CLIENT_TOKEN, sign: { id: AGENCY_KEY_ID, secret: AGENCY_SECRET } });

// An app shows each step, and buttons for what the client can do meanwhile.
const onChange = (t: Transition) => console.log(`  ${t.kind}: ${t.step ?? t.state} [${t.next.join(', ')}]`);

async function rent(): Promise<void> {
  const here = { latitude: 48.1619, longitude: 11.5864 };
  const { data: vehicles } = await api.get('vehicles', { query: { ...here, radius_m: 2000 } });
  const car = vehicles[0];
  if (!car) throw new Error('no vehicle is free within 2 km');
  console.log(`vehicle ${car.id}, ${car.distance_m} m away`);

  const now = api.now().getTime(); // the phone's clock may be wrong
  const time = { start_date: new Date(now).toISOString(), end_date: new Date(now + 3_600_000).toISOString() };
  const { data: quote } = await api.post('quotes', { body: { vehicle_id: car.id, ...time } });
  console.log(`costs ${quote.pricing.rental_total} ${quote.pricing.currency}, valid until ${quote.expires_at}`);

  const { data: booking } = await api.post('bookings', { body: { quote_id: quote.id } });
  console.log(`${booking.reference} is ${booking.status}`);

  await move(api, 'start', booking.id, { place: here, onChange });
  await move(api, 'pause', booking.id, { onChange });
  await move(api, 'resume', booking.id, { onChange });
  const ended = await move(api, 'end', booking.id, { onChange });
  console.log(`${ended.reference} is ${ended.status}, for ${ended.pricing.rental_total} ${ended.pricing.currency}`);
}

try {
  await rent();
} catch (e) {
  if (!(e instanceof MotorpoolError)) throw e;
  console.error(`${e.code}: ${e.message}`); // an app decides by the code
  for (const check of e.checks.filter((c) => !c.ok)) console.error(`  ${check.name}: ${check.reported}, expected ${check.expected}`);
  process.exitCode = 1;
}
