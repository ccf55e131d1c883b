/** The members of a service that a test needs. */
type Given<T> = {
  [Name in keyof T]?: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Result extends Promise<unknown> ? Result : Partial<Result>
    : Partial<T[Name]>;
};

/** Creates an object with only the services that a test needs. Throws if the tested code reads another service. */
export function fakeServices<T extends object>(given: Given<T>): T {
  return new Proxy(given, {
    get(target, name) {
      if (!Reflect.has(target, name)) throw new Error(`The test has no ${String(name)}.`);
      return Reflect.get(target, name) as unknown;
    },
  }) as unknown as T;
}
