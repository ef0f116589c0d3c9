// Sound and a notification of the desktop for new critical alerts, where a person has asked for them.
import { alerts } from './alerts.svelte';
import { keep } from './storage';

const stored = 'bell';
const sound = () => import('./ring');

class Bell {
  on = $state(localStorage.getItem(stored) === 'on');

  /** Switches it; the browser asks the person once. */
  async toggle() {
    this.on = !this.on;
    keep(localStorage, stored, this.on ? 'on' : 'off');
    if (!this.on) return;
    void sound().then(({ beep }) => beep()); // so that the person knows it, and the browser allows later ones
    if ('Notification' in window && Notification.permission === 'default') await Notification.requestPermission();
  }

  /** Follows alerts until the returned function is called. */
  follow(): () => void {
    if (this.on) sound().catch(() => {}); // a later version of the service does not have this one's
    return alerts.watch(async ({ change, alert }) => {
      const isNew = (change === 'opened' || change === 'raised') && alert.acknowledged_at === null;
      if (this.on && isNew && alert.severity === 'critical') (await sound()).ring(alert);
    });
  }
}

export const bell = new Bell();
