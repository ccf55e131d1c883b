import type { Budget } from "./budget.ts";
import type { CallKind } from "./call.ts";
import { createPacer, type OpenPacer, type Pacer, type Step } from "./pacer.ts";
import { isWaiting } from "./reply-state.ts";

interface Route {
  isSpare: boolean;
  /** Its number in the pacer of that way. */
  number: number;
}

/**
 * Paces replies that can be written in two ways with limits of their own. A reply goes the first way while that has
 * room for one more when its first post is due; otherwise, and when it is over before that, it goes the spare way. So no
 * reply waits for room to begin, and none goes back.
 */
export function createTwoWayPacer(first: Budget, spare: Budget): Pacer {
  const pacers = { first: createPacer(first), spare: createPacer(spare) };
  const routes = new Map<number, Route>();
  /** Ways of the calls under way: a reply may leave before its call has ended. */
  const flights = new Map<number, Route>();
  let joined = 0;

  const pacerOf = ({ isSpare }: Route): OpenPacer => (isSpare ? pacers.spare : pacers.first);

  function divert(route: Route): void {
    const reply = pacers.first.release(route.number);
    if (reply !== undefined) Object.assign(route, { isSpare: true, number: pacers.spare.adopt(reply) });
  }

  /** A post that the first way has no room for, or that comes too late to grow. */
  function isCrowdedOut(route: Route, now: number): boolean {
    const reply = route.isSpare ? undefined : pacers.first.find(route.number);
    if (reply === undefined || reply.next !== "post" || !isWaiting(reply)) return false;
    return reply.ended || first.credit({ kind: "post", room: reply.room }, now) < 1;
  }

  function toOuter(step: Step & { type: "send" }, isSpare: boolean): Step {
    const [reply = 0, route] = [...routes].find(([, it]) => it.isSpare === isSpare && it.number === step.reply) ?? [];
    if (route !== undefined) flights.set(reply, { ...route });
    return { ...step, reply, ...(isSpare && { isSpare }) };
  }

  return {
    join(now, room, isSpare = false, first?: CallKind) {
      joined += 1;
      // Alone means alone among all replies, whichever way they go.
      const own = room ?? `reply ${joined}`;
      routes.set(joined, { isSpare, number: (isSpare ? pacers.spare : pacers.first).join(now, own, isSpare, first) });
      return joined;
    },
    text(reply, units, now) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).text(route.number, units, now);
    },
    end(reply, now) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).end(route.number, now);
    },
    leave(reply, now) {
      const route = routes.get(reply);
      if (route !== undefined) pacerOf(route).leave(route.number, now);
      routes.delete(reply);
    },
    step(now) {
      for (const route of routes.values()) if (isCrowdedOut(route, now)) divert(route);
      const begun = pacers.first.step(now);
      if (begun.type === "send") return toOuter(begun, false);
      const other = pacers.spare.step(now);
      if (other.type === "send") return toOuter(other, true);
      if (begun.type === "idle") return other;
      return other.type === "idle" || begun.until <= other.until ? begun : other;
    },
    done(reply, written, now) {
      const flight = flights.get(reply);
      if (flight === undefined) return;
      flights.delete(reply);
      pacerOf(flight).done(flight.number, written, now);
      const route = routes.get(reply);
      if (route !== undefined && written.isSpare === true && !route.isSpare) divert(route);
    },
    keepUntil: () => Math.max(pacers.first.keepUntil(), pacers.spare.keepUntil()),
  };
}
