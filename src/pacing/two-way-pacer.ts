import type { Pacer, PacerStep } from "../port/pace.ts";
import type { Budget, Call } from "./budget.ts";
import { createPacer, isWaiting, type OpenPacer } from "./pacer.ts";

/** Replies that grow at once the first way before another one may be better off the fallback. */
const AT_EASE = 3;

interface Route {
  isFallback: boolean;
  /** Its number in the pacer of that way. */
  number: number;
}

/**
 * Paces replies that can be written in two ways with limits of their own. A reply goes the first way while that has
 * room for one more when its first post is due; otherwise, and when it is over before that, it uses the fallback. So no
 * reply waits for room to begin, and none goes back. The limits of the fallback are worth something too: when many
 * replies grow at once, those go there that get more calls there.
 */
export function createTwoWayPacer(first: Budget, fallback: Budget): Pacer {
  const pacers = { first: createPacer(first), fallback: createPacer(fallback) };
  const routes = new Map<number, Route>();
  /** Ways of the calls under way: a reply may leave before its call has ended. */
  const flights = new Map<number, Route>();
  let joined = 0;

  const pacerOf = ({ isFallback }: Route): OpenPacer => (isFallback ? pacers.fallback : pacers.first);

  function divert(route: Route): void {
    const reply = pacers.first.release(route.number);
    if (reply !== undefined) Object.assign(route, { isFallback: true, number: pacers.fallback.adopt(reply) });
  }

  /** A post that the first way has no room for, or less than the fallback, or that comes too late to grow. */
  function isCrowdedOut(route: Route, now: number): boolean {
    const reply = route.isFallback ? undefined : pacers.first.find(route.number);
    if (reply === undefined || reply.next !== "post" || !isWaiting(reply)) return false;
    return reply.ended || first.credit({ kind: "post", room: reply.room }, now) < 1 || hasMoreToSpare(reply.room, now);
  }

  /** Whether many replies grow the first way, and each reply of the fallback would still have more calls than they. */
  function hasMoreToSpare(room: string, now: number): boolean {
    const growing = pacers.first.growing(now);
    if (growing <= AT_EASE || fallback.credit({ kind: "post", room }, now) < 1) return false;
    const edit: Call = { kind: "edit", room };
    return fallback.credit(edit, now) / (pacers.fallback.growing(now) + 1) >= first.credit(edit, now) / growing;
  }

  function toOuter(step: PacerStep & { type: "send" }, isFallback: boolean): PacerStep {
    const [reply = 0, route] =
      [...routes].find(([, it]) => it.isFallback === isFallback && it.number === step.reply) ?? [];
    if (route !== undefined) flights.set(reply, { ...route });
    return { ...step, reply, ...(isFallback && { isFallback }) };
  }

  return {
    join(now, { room, isFallback = false, first } = {}) {
      joined += 1;
      // Alone means alone among all replies, whichever way they go.
      const own = { room: room ?? `reply ${joined}`, first };
      routes.set(joined, { isFallback, number: (isFallback ? pacers.fallback : pacers.first).join(now, own) });
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
      const other = pacers.fallback.step(now);
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
      if (route !== undefined && written.isFallback === true && !route.isFallback) divert(route);
    },
    keepUntil: () => Math.max(pacers.first.keepUntil(), pacers.fallback.keepUntil()),
  };
}
