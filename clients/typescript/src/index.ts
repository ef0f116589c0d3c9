export { Motorpool, type Answer, type Config, type Data, type Input, type Options, type Path } from './client.js';
export { MotorpoolError, type Check } from './error.js';
export { follow, move, type Booking, type Move, type Transition, type Wait } from './rental.js';
export { sign, type AgencyKey, type SignedRequest } from './sign.js';
export type { components, paths } from './contract.js';
