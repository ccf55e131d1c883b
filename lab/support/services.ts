/** The services that a test needs. Each has only the members that the test uses. */
type Given<T> = {
  [Name in keyof T]?: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Result extends Promise<unknown> ? Result : Partial<Result>
    : Partial<T[Name]>;
};

/** Replaces all services in a test that needs only a few. Throws if the code under test reads another service. */
export function fakeServices<T extends object>(given: Given<T>): T {
  return new Proxy(given, {
    get(target, name) {
      if (!Reflect.has(target, name)) throw new Error(`The test has no ${String(name)}.`);
      return Reflect.get(target, name) as unknown;
    },
  }) as unknown as T;
}
