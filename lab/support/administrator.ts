import type { Now } from "../../src/admin/page/wire.ts";

export const PASSWORD = "correct horse battery";

/** Uses the dashboard like a browser. */
export interface Administrator {
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Rejects if the status is not 200. */
  read<T>(path: string, init?: RequestInit): Promise<T>;
  /** Resolves when `holds` returns true for the work of all processes, as in the live stream. */
  until(holds: (now: Now) => boolean): Promise<Now>;
  cookie: string;
  csrfToken: string;
}

/** Signs in with the password, or uses the session of another replica. */
export async function comeIn(url: string, given?: Pick<Administrator, "cookie" | "csrfToken">): Promise<Administrator> {
  const { cookie, csrfToken } = given ?? (await enter(url));
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${url}/admin/api/${path}`, {
      ...init,
      headers: { Origin: url, cookie, "x-csrf-token": csrfToken, ...(init.headers as Record<string, string>) },
    });

  return {
    ask,
    cookie,
    csrfToken,
    async read<T>(path: string, init?: RequestInit) {
      const response = await ask(path, init);
      if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
      return (await response.json()) as T;
    },
    async until(holds) {
      const response = await ask("live");
      const decoder = new TextDecoder();
      let text = "";
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes as Uint8Array, { stream: true });
        const events = text.split("\n\n");
        text = events.pop() ?? "";
        const found = events.map((event) => JSON.parse(event.replace(/^[\s\S]*?data: /, "")) as Now).find(holds);
        if (found !== undefined) return found;
      }
      throw new Error("The stream has ended.");
    },
  };
}

export function tryPassword(url: string, password: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/admin/api/session`, {
    method: "POST",
    headers: { Origin: url, "content-type": "application/json", ...headers },
    body: JSON.stringify({ password }),
  });
}

async function enter(url: string): Promise<Pick<Administrator, "cookie" | "csrfToken">> {
  const response = await tryPassword(url, PASSWORD);
  const { csrfToken } = (await response.json()) as { csrfToken: string };
  return { csrfToken, cookie: response.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
}
